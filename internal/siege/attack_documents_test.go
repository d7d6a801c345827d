package siege

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// laughs is a document whose aliases stand for 10^depth items.
func laughs(depth int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range depth {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	fmt.Fprintf(&b, "data: *a%d\n", depth)
	return b.String()
}

// documents are texts that are small to send and large to read.
func documents() map[string]func() string {
	return map[string]func() string{
		"laughs.yaml":  func() string { return laughs(9) },
		"merges.yaml":  func() string { return "a: &a {x: 1}\ndata:\n" + strings.Repeat("  - <<: [*a, *a, *a, *a]\n", 50_000) },
		"anchors.yaml": func() string { return "data: &d [*d]\n" },
		"ones.json":    func() string { return "[1" + strings.Repeat(",1", 8<<20) + "]" },
		"ones.yaml":    func() string { return "data: [1" + strings.Repeat(",1", 7<<19) + "]\n" },
		"deep.json":    func() string { return strings.Repeat("[", 1<<20) },
		"deep.yaml":    func() string { return strings.Repeat("[", 1<<18) },
		"objects.json": func() string { return strings.Repeat(`{"data":`, 100_000) + "1" + strings.Repeat("}", 100_000) },
		"indents.yaml": func() string { return indents(2000) },
		"keys.yaml":    func() string { return strings.Repeat("? ", 100_000) + "\n" },
		"many.yaml":    func() string { return strings.Repeat("--- {}\n", 100_000) },
		"value.json": func() string {
			return `{"data":[{"key":"` + linux("big") + `","value":{"name":"` + strings.Repeat("b", 4<<20) + `"}}]}`
		},
		"tags.yaml":     func() string { return "data: !!binary " + strings.Repeat("A", 1<<20) + "\n" },
		"invalid.yaml":  func() string { return strings.Repeat("\xff\xfe", 1<<16) },
		"wide.json":     func() string { return `{"data":[` + strings.TrimSuffix(strings.Repeat(`{},`, 500_000), ",") + `]}` },
		"utf16.yaml":    func() string { return "\xff\xfe" + strings.Repeat("d\x00", 1<<16) },
		"comments.yaml": func() string { return strings.Repeat("#\n", 1<<20) },
	}
}

func indents(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// parsers gives such documents to all that reads documents.
func parsers(ctx context.Context, t *target) error {
	all := documents()
	order := slices.Sorted(maps.Keys(all))
	return t.every(ctx, 500*time.Millisecond, func(n int) error {
		name := order[n%len(order)]
		text := []byte(all[name]())
		if err := errors.Join(t.save(name, text), t.write(ctx, item{linux("document"), string(text)})); err != nil {
			return err
		}
		t.submit(ctx, text)
		t.post(ctx, "/scheduler/plan", io.LimitReader(endless("["), 64<<20)) // its length is not announced
		return nil
	})
}

// endless returns a reader of a text again and again.
func endless(text string) io.Reader { return &repeated{text: text} }

// A repeated is a text that is read again and again.
type repeated struct {
	text string
	at   int // of the next byte
}

// Read implements io.Reader. It fills p, however short that is: a reader that returns nothing is asked again for ever.
func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) {
		m := copy(p[n:], r.text[r.at:])
		n, r.at = n+m, (r.at+m)%len(r.text)
	}
	return n, nil
}

func TestEndless(t *testing.T) {
	e := endless("abc")
	for _, want := range []string{"a", "bcabca", "bc"} {
		got := make([]byte, len(want))
		if n, err := e.Read(got); n != len(want) || err != nil || string(got) != want {
			t.Errorf("read %d bytes %q, %v; want %q", n, got, err, want)
		}
	}
}
