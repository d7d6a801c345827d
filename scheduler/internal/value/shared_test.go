package value

import (
	"fmt"
	"testing"
)

func TestEqualDependenciesAreShared(t *testing.T) {
	s := NewShared()
	on := func(keys ...string) (deps []Dep) {
		for _, key := range keys {
			deps = append(deps, Dep{Label: "needs", Key: key})
		}
		return deps
	}
	s.Of(on("vrf/1", "interface/a"))
	first := s.Of(on("vrf/1", "interface/a"))
	if again := s.Of(on("vrf/1", "interface/a")); &again[0] != &first[0] {
		t.Error("equal dependencies are not shared")
	}
	for i := range 3000 { // some have the place of others
		key := fmt.Sprint("interface/", i)
		if got := s.Of(on(key)); len(got) != 1 || got[0].Key != key {
			t.Fatalf("the dependencies on %s became %v", key, got)
		}
	}
	other := s.Of(on("vrf/2", "interface/a"))
	if other[0].Key != "vrf/2" || first[0].Key != "vrf/1" {
		t.Errorf("the dependencies became %v and %v", first, other)
	}
	either := []Dep{{Label: "any", Any: &AnyOf{Prefixes: []string{"a/"}}}}
	if got := s.Of(either); &got[0] != &either[0] || s.Of(nil) != nil {
		t.Error("others do not stay as they are")
	}
}
