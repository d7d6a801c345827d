package printable_test

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/internal/testkit"
)

func TestLineAndText(t *testing.T) {
	tests := map[string]struct{ in, line, text string }{
		"plain":               {`a key/with "quotes" \ and é 漢 …`, "", ""},
		"escape sequence":     {"\x1b[2J", `\x1b[2J`, ""},
		"one-byte C1":         {"a\u009b2J", `a\u009b2J`, ""},
		"line feed":           {"a\nOK", `a\nOK`, "a\nOK"},
		"carriage return":     {"a\rOK", `a\rOK`, ""},
		"tab":                 {"a\tb", `a\tb`, ""},
		"NUL and DEL":         {"a\x00b\x7f", `a\x00b\x7f`, ""},
		"right-to-left":       {"a\u202etxt", `a\u202etxt`, ""},
		"isolate":             {"\u2066x\u2069", `\u2066x\u2069`, ""},
		"line separator":      {"a\u2028b", `a\u2028b`, ""},
		"paragraph separator": {"a\u2029b", `a\u2029b`, ""},
		"zero width":          {"a\u200bb\ufeff", `a\u200bb\ufeff`, ""},
		"tag":                 {"a\U000e0041", `a\U000e0041`, ""},
		"other space":         {"a\u00a0b", `a\u00a0b`, ""},
		"not UTF-8":           {"a\xff\xfeb", `a\xff\xfeb`, ""},
		"replacement":         {"a\ufffdb", "", ""},
	}
	for name, test := range tests {
		line, text := test.line, test.text
		if line == "" {
			line = test.in
		}
		if text == "" {
			text = line
		}
		if got := printable.Line(test.in); got != line {
			t.Errorf("%s: Line(%q) is %q, want %q", name, test.in, got, line)
		}
		if got := printable.Text(test.in); got != text {
			t.Errorf("%s: Text(%q) is %q, want %q", name, test.in, got, text)
		}
	}
}

func TestWord(t *testing.T) {
	for in, want := range map[string]string{
		"config/linux/l3/v2/route/10.1.0.0/16/veth1": "config/linux/l3/v2/route/10.1.0.0/16/veth1",
		"":                  "''",
		"a b":               "'a b'",
		"a;reboot":          "'a;reboot'",
		"$(reboot)":         "'$(reboot)'",
		"it's":              `'it'\''s'`,
		"~root":             "'~root'",
		"a\nreboot":         `$'a\012reboot'`,
		"\x1b'\\\u202e\xff": `$'\033\'\\\342\200\256\377'`,
	} {
		if got := printable.Word(in); got != want {
			t.Errorf("Word(%q) is %s, want %s", in, got, want)
		}
	}
}

// FuzzWord has a shell read the word back.
func FuzzWord(f *testing.F) {
	bash, err := exec.LookPath("bash")
	testkit.Need(f, "bash", err == nil)
	for _, seed := range []string{"", "a b", "$(reboot)`x`", "it's \\", "\x1b\n\r\u202e\u2028\xff", "!!", "*?[a]{b,c}", "-n", "#x", "=a", "1777777"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) {
			t.Skip("no argument holds NUL")
		}
		word := printable.Word(text)
		if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("Word(%q) is %q, which is not printable", text, word)
		}
		if len(text) > 10_000 {
			t.Skip("long")
		}
		out, err := exec.Command(bash, "-c", "printf %s "+word).Output()
		if !strings.HasPrefix(text, "-") && (err != nil || string(out) != text) {
			t.Errorf("Word(%q) is %s, which bash reads as %q (%v)", text, word, out, err)
		}
	})
}
