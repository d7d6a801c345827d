package spelling_test

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/internal/spelling"
)

func TestLengths(t *testing.T) {
	for _, c := range []struct{ text, with, without string }{
		{"10.0.0.1", "10.0.0.1/32", "10.0.0.1"},
		{"10.0.0.1/24", "10.0.0.1/24", "10.0.0.1"},
		{"fd00::1", "fd00::1/128", "fd00::1"},
		{"FD00:0::1/64", "FD00:0::1/64", "FD00:0::1"},
		{"10.0.0.1/33", "10.0.0.1/33", "10.0.0.1/33"},
		{"fe80::1%eth0", "fe80::1%eth0", "fe80::1%eth0"},
		{"alloc:net1/if1", "alloc:net1/if1", "alloc:net1/if1"},
		{"x", "x", "x"},
		{"", "", ""},
	} {
		if got, changed := spelling.WithLength(c.text); got != c.with || changed != (got != c.text) {
			t.Errorf("%q with length: %q, changed %v, want %q", c.text, got, changed, c.with)
		}
		if got, changed := spelling.WithoutLength(c.text); got != c.without || changed != (got != c.text) {
			t.Errorf("%q without length: %q, changed %v, want %q", c.text, got, changed, c.without)
		}
	}
}

func TestInterface(t *testing.T) {
	in := []string{"10.0.0.1/24", "10.0.1.1", "alloc:net1"}
	out, changed := spelling.Interface(in)
	if !changed || !slices.Equal(out, []string{"10.0.0.1/24", "10.0.1.1/32", "alloc:net1"}) || in[1] != "10.0.1.1" {
		t.Errorf("%v becomes %v, changed %v", in, out, changed)
	}
	if _, changed := spelling.Interface(out); changed {
		t.Error("a second pass changes the addresses again")
	}
}
