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
NAME               STATE       ERROR                     KEY
veth1              CONFIGURED                            config/linu…rface/veth1
10.1.0.0/16/veth1  FAILED      netlink: th…ENETUNREACH)  config/linu….0/16/veth1
`},
		// The lines of a smaller terminal are as wide as those of 80 columns.
		{40, `
NAME               STATE       ERROR                     KEY
veth1              CONFIGURED                            config/linu…rface/veth1
10.1.0.0/16/veth1  FAILED      netlink: th…ENETUNREACH)  config/linu….0/16/veth1
`},
		{140, `
NAME               STATE       ERROR                                                              KEY
veth1              CONFIGURED                                                                     config/linux/interfaces/v2/interface/veth1
10.1.0.0/16/veth1  FAILED      netlink: the network of the gate…254 is unreachable (ENETUNREACH)  config/linux/l3/v2/route/10.1.0.0/16/veth1
`},
		{200, whole},
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
	if want := "vpp.ipfix.flowprobe-feature  ligato.vpp.i…ProbeFeature  config/vpp/…obe-feature/\n"; !strings.HasSuffix(got, want) {
		t.Errorf("printed\n%s; expected the last line\n%s", got, want)
	}
	got = onTerminal(t, 80, 24, func(out io.Writer) error {
		t := show.NewTable(out, "MODEL", "NAME", "STATE", "REASON", "SINCE", "DECLARED", "ACTUAL", "KEY")
		t.Whole("STATE", "SINCE", "NAME") // the name is too long for half of the line
		long := strings.Repeat("l", 50)
		t.Row(long, long, "CONFIGURED", long, "15m3s", long, long, long)
		return t.End()
	})
	if want := "llll…llll  llll…llll  CONFIGURED  llll…llll  15m3s  lll…llll  lll…llll  lll…llll\n"; !strings.HasSuffix(got, want) {
		t.Errorf("printed\n%s; expected the last line\n%s", got, want)
	}
	got = onTerminal(t, 80, 24, func(out io.Writer) error {
		t := show.NewTable(out, "MODEL", "KEY")
		t.Whole("MODEL")
		t.Row(strings.Repeat("m", 50), strings.Repeat("k", 50))
		return t.End()
	})
	if !strings.Contains(got, "m…m") || !strings.Contains(got, "k…k") {
		t.Errorf("printed\n%s; expected both columns shortened", got)
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
