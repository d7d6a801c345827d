package show_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// onTerminal returns the output of f on a terminal of this size, with the line ends of text.
func onTerminal(t *testing.T, columns, lines uint16, f func(io.Writer) error) string {
	t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := pty.Setsize(master, &pty.Winsize{Cols: columns, Rows: lines}); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(master) // EIO is how a terminal ends
		read <- string(text)
	}()
	if err := f(terminal); err != nil {
		t.Error(err)
	}
	terminal.Close()
	return strings.ReplaceAll(<-read, "\r\n", "\n")
}

// values prints a table with a long name, a long key and a long error.
func values(out io.Writer) error {
	t := show.NewTable(out, "NAME", "STATE", "ERROR", "KEY")
	t.Row("veth1", "CONFIGURED", "", "config/linux/interfaces/v2/interface/veth1")
	t.Row("10.1.0.0/16/veth1", "FAILED", "netlink: the network of the gateway 10.1.0.254 is unreachable (ENETUNREACH)", "config/linux/l3/v2/route/10.1.0.0/16/veth1")
	return t.End()
}

func TestTableFitsTerminal(t *testing.T) {
	for _, tt := range []struct {
		columns uint16
		want    string
	}{
		{80, `
NAME               STATE       KEY
veth1              CONFIGURED  config/linux/interfaces/v2/interface/veth1
10.1.0.0/16/veth1  FAILED      config/linux/l3/v2/route/10.1.0.0/16/veth1
    error: netlink: the network of the gateway 10.1.0.254 is unreachable
      (ENETUNREACH)
`},
		// The lines of a smaller terminal are as wide as those of 80 columns.
		{40, `
NAME               STATE       KEY
veth1              CONFIGURED  config/linux/interfaces/v2/interface/veth1
10.1.0.0/16/veth1  FAILED      config/linux/l3/v2/route/10.1.0.0/16/veth1
    error: netlink: the network of the gateway 10.1.0.254 is unreachable
      (ENETUNREACH)
`},
		{140, `
NAME               STATE       KEY
veth1              CONFIGURED  config/linux/interfaces/v2/interface/veth1
10.1.0.0/16/veth1  FAILED      config/linux/l3/v2/route/10.1.0.0/16/veth1
    error: netlink: the network of the gateway 10.1.0.254 is unreachable (ENETUNREACH)
`},
	} {
		if got := "\n" + onTerminal(t, tt.columns, 24, values); got != tt.want {
			t.Errorf("%d columns:%s\nexpected:%s", tt.columns, got, tt.want)
		}
	}
}

const whole = `
NAME               STATE       ERROR                                                                        KEY
veth1              CONFIGURED                                                                               config/linux/interfaces/v2/interface/veth1
10.1.0.0/16/veth1  FAILED      netlink: the network of the gateway 10.1.0.254 is unreachable (ENETUNREACH)  config/linux/l3/v2/route/10.1.0.0/16/veth1
`

func TestTableIsCompleteInFiles(t *testing.T) {
	var out bytes.Buffer
	if err := values(&out); err != nil {
		t.Fatal(err)
	}
	if "\n"+out.String() != whole {
		t.Errorf("printed:\n%s\nexpected:%s", &out, whole)
	}
}

// A column that people type stays whole, unless that takes more than half of the line.
func TestWholeColumn(t *testing.T) {
	got := onTerminal(t, 80, 24, func(out io.Writer) error {
		t := show.NewTable(out, "MODEL", "MESSAGE", "KEY")
		t.Whole("MODEL")
		t.Row("vpp.ipfix.flowprobe-feature", "ligato.vpp.ipfix.FlowProbeFeature", "config/vpp/ipfix/v2/flowprobe-feature/")
		return t.End()
	})
	if want := "vpp.ipfix.flowprobe-feature  ligato.vpp.i…ProbeFeature  …/v2/flowprobe-feature/\n"; !strings.HasSuffix(got, want) {
		t.Errorf("printed\n%s; expected the last line\n%s", got, want)
	}
	got = onTerminal(t, 80, 24, func(out io.Writer) error {
		t := show.NewTable(out, "MODEL", "NAME", "STATE", "REASON", "SINCE", "DECLARED", "ACTUAL", "KEY")
		t.Whole("STATE", "SINCE", "NAME") // the name is too long for half of the line
		long := strings.Repeat("l", 50)
		t.Row(long, long, "CONFIGURED", long, "15m3s", long, long, long)
		return t.End()
	})
	want := "…llllllllll  …llllllllll  CONFIGURED  15m3s  lllll…lllll  llll…lllll  …lllllllll\n    reason: " + strings.Repeat("l", 50) + "\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("printed\n%s; expected the last line\n%s", got, want)
	}
	got = onTerminal(t, 80, 24, func(out io.Writer) error {
		t := show.NewTable(out, "MODEL", "KEY")
		t.Whole("MODEL")
		t.Row(strings.Repeat("m", 50), strings.Repeat("k", 50))
		return t.End()
	})
	if !strings.Contains(got, "\n…m") || !strings.Contains(got, "  …k") {
		t.Errorf("printed\n%s; expected both columns shortened", got)
	}
}

// TestNamesKeepTheirEnds has names that share their beginning, and others. The beginning that all share goes first.
// Output that is no terminal is whole.
func TestNamesKeepTheirEnds(t *testing.T) {
	const prefix = "config/linux/interfaces/v2/interface/"
	long := strings.Repeat("x", 70)
	printed := func(names ...string) func(io.Writer) error {
		return func(out io.Writer) error {
			t := show.NewTable(out, "STATE", "KEY", "KEYS")
			for _, name := range names {
				t.Row("CONFIGURED", name, "7")
			}
			return t.End()
		}
	}
	for name, tt := range map[string]struct {
		names []string
		want  string
	}{
		"all fit":           {[]string{prefix + "a", prefix + "b"}, "CONFIGURED  " + prefix + "a  7\nCONFIGURED  " + prefix + "b  7\n"},
		"one is too long":   {[]string{prefix + "a", prefix + strings.Repeat("b", 40)}, "CONFIGURED  …a                                         7\nCONFIGURED  …" + strings.Repeat("b", 40) + "  7\n"},
		"nothing is shared": {[]string{"a", "linux/" + long + "/10.1.0.1/24"}, "…" + strings.Repeat("x", 49) + "/10.1.0.1/24  7\n"},
		"a part is left":    {[]string{"a", "linux/" + strings.Repeat("y", 20) + "/" + strings.Repeat("x", 50)}, "  …/" + strings.Repeat("x", 50) + strings.Repeat(" ", 12) + "7\n"},
	} {
		got := onTerminal(t, 80, 24, printed(tt.names...))
		got = got[strings.Index(got, "\n")+1:]
		if !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s:\n%sexpected\n%s", name, got, tt.want)
		}
		for line := range strings.Lines(got) {
			if show.Width(line) > 81 {
				t.Errorf("%s: a line is wider than the terminal: %s", name, line)
			}
		}
		var out bytes.Buffer
		if err := printed(tt.names...)(&out); err != nil || strings.Contains(out.String(), "…") {
			t.Errorf("%s: in a file:\n%s%v", name, &out, err)
		}
	}
}

// TestRemote has errors of several lines, and texts for programs.
func TestRemote(t *testing.T) {
	for text, want := range map[string]string{
		"values are invalid:\n  line 3: mtu\n  line 4: name": "values are invalid: line 3: mtu; line 4: name",
		"a\n\nb": "a; b",
		"rpc error: code = Unavailable desc = connection refused":                             "connection refused",
		`etcd: connection error: desc = "transport: Error while dialing: dial tcp: no route"`: "etcd: dial tcp: no route",
		"KeyErrors: [config/a (CREATE): no memory, config/b (UPDATE): x]":                     "these failed: config/a (CREATE): no memory, config/b (UPDATE): x",
		"404 Not Found: 404 page not found":                                                   "404 Not Found: there is nothing at this path",
		"create_vlan_subif(id=7): VPPApiError: VLAN subif already exists (-56)":               "create_vlan_subif(id=7): VPP says: VLAN subif already exists (-56)",
	} {
		if got := show.Remote(text); got != want {
			t.Errorf("%q became %q; expected %q", text, got, want)
		}
	}
}

// TestShorten checks for any text that the result fits, and that it has both ends.
func TestShorten(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abc/é漢字한e\u0301")), 0, 40, -1).Draw(t, "text")
		most := rapid.IntRange(-1, 60).Draw(t, "most")
		got := show.Shorten(text, most)
		if w := show.Width(got); w > max(most, 0) {
			t.Fatalf("%q has %d columns; expected at most %d", got, w, most)
		}
		if show.Width(text) <= most && got != text {
			t.Fatalf("%q became %q, although it fits", text, got)
		}
		head, tail, cut := strings.Cut(got, "…")
		if cut && (!strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail)) {
			t.Fatalf("%q is no shorter form of %q", got, text)
		}
	})
}

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "veth1": 5, "é": 1, "e\u0301": 1, "漢字": 4, "…": 1} {
		if got := show.Width(text); got != want {
			t.Errorf("%q has %d columns; expected %d", text, got, want)
		}
	}
}

func TestSizeOfFile(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, w := range []io.Writer{f, new(bytes.Buffer)} {
		if columns, lines := show.Size(w); columns != 80 || lines != 24 {
			t.Errorf("%T has %d x %d; expected 80 x 24", w, columns, lines)
		}
	}
}
