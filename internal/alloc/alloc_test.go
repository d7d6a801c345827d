package alloc

import (
	"net/netip"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		in   string
		want Ref
		ok   bool
	}{
		{"alloc:net1", Ref{Network: "net1"}, true},
		{"alloc:net1/if1", Ref{Network: "net1", Interface: "if1"}, true},
		{"alloc:net1/GW", Ref{Network: "net1", Gateway: true}, true},
		{"alloc:net1/if1/GW", Ref{Network: "net1", Interface: "if1", Gateway: true}, true},
		{"alloc:net1/a/b", Ref{Network: "net1", Interface: "a/b"}, true},
		{"alloc:", Ref{}, false},
		{"alloc:/if1", Ref{}, false},
		{"alloc:net1/", Ref{}, false},
		{"10.0.0.1/24", Ref{}, false},
	}
	for _, tt := range tests {
		if got, ok := Parse(tt.in); got != tt.want || ok != tt.ok {
			t.Errorf("%s: got %+v %v, want %+v %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
	if got := (Ref{Network: "n"}).Key("if1"); got != "config/netalloc/v1/ip/network/n/interface/if1" {
		t.Error(got)
	}
}

type book map[string]Allocation

func (b book) Get(name string) (Allocation, bool) { a, ok := b[name]; return a, ok }

func TestWhatIsReferredTo(t *testing.T) {
	b := book{
		"network/n/interface/if1": {Address: netip.MustParsePrefix("10.0.0.1/24"), Gateway: netip.MustParsePrefix("10.0.0.254/32")},
		"network/m/interface/if1": {Address: netip.MustParsePrefix("fd00::1/128")},
	}
	tests := []struct{ in, address, network, host string }{
		{"alloc:n", "10.0.0.1/24", "10.0.0.0/24", "10.0.0.1"},
		{"alloc:n/if1", "10.0.0.1/24", "10.0.0.0/24", "10.0.0.1"},
		{"alloc:n/GW", "10.0.0.254/32", "10.0.0.254/32", "10.0.0.254"},
		{"alloc:m", "fd00::1/128", "fd00::1/128", "fd00::1"},
		{"alloc:m/GW", "alloc:m/GW", "alloc:m/GW", "alloc:m/GW"},
		{"alloc:n/if2", "alloc:n/if2", "alloc:n/if2", "alloc:n/if2"},
		{"10.0.0.7/8", "10.0.0.7/8", "10.0.0.7/8", "10.0.0.7/8"},
	}
	for _, tt := range tests {
		if a, n, h := Address(b, tt.in, "if1"), Network(b, tt.in, "if1"), Host(b, tt.in, "if1"); a != tt.address || n != tt.network || h != tt.host {
			t.Errorf("%s is %s, %s, %s", tt.in, a, n, h)
		}
	}
	if got := Address(nil, "alloc:n", "if1"); got != "alloc:n" {
		t.Errorf("without a book it is %s", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("alloc:net1/if1/GW")
	f.Fuzz(func(t *testing.T, s string) {
		if ref, ok := Parse(s); ok && ref.String() != s {
			t.Fatalf("%q parses, but makes %q", s, ref)
		}
	})
}
