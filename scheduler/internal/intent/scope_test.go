package intent_test

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/intent"
)

// declared returns a graph with the values a, which has the part a/part, and b. Nobody desires gone.
func declared() *graph.Graph {
	g := graph.New()
	a := &graph.Value{Key: "a"}
	a.SetDerived([]*graph.Value{{Key: "a/part"}})
	g.Want(a)
	g.Want(&graph.Value{Key: "b"})
	g.Found(&graph.Value{Key: "gone"}, nil, true)
	return g
}

func TestConcerns(t *testing.T) {
	g := declared()
	tests := []struct {
		name  string
		scope intent.Scope
		want  []string
	}{
		{"nothing", intent.Scope{}, nil},
		{"a value with its part", intent.Scope{Keys: slices.Values([]string{"a"})}, []string{"a", "a/part"}},
		{"a part alone", intent.Scope{Keys: slices.Values([]string{"a/part"})}, []string{"a/part"}},
		{"an unknown key", intent.Scope{Keys: slices.Values([]string{"c"})}, nil},
		{"with Replace, values that are not desired", intent.Scope{Keys: slices.Values([]string{"b"}), Replace: true}, []string{"b", "gone"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, key := range []string{"a", "a/part", "b", "gone"} {
				n := g.Node(key)
				if n == nil {
					t.Fatalf("the graph has no node %s", key)
				}
				if tt.scope.Concerns(n) {
					got = append(got, key)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("it concerns %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAnyLooksAtDerivedValues(t *testing.T) {
	g := declared()
	s := intent.Scope{Keys: slices.Values([]string{"unknown", "a"})}
	for key, want := range map[string]bool{"a": true, "a/part": true, "b": false} {
		if got := s.Any(g, func(n *graph.Node) bool { return n.Key() == key }); got != want {
			t.Errorf("a node of the scope is %s: %v, want %v", key, got, want)
		}
	}
}
