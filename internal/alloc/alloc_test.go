package alloc

import "testing"

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

func FuzzParse(f *testing.F) {
	f.Add("alloc:net1/if1/GW")
	f.Fuzz(func(t *testing.T, s string) {
		if ref, ok := Parse(s); ok && ref.String() != s {
			t.Fatalf("%q parses, but makes %q", s, ref)
		}
	})
}
