package intent_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/intent"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// described is a descriptor that only observes. The tests look at desired values, so it needs no verbs.
func described() *kind.Descriptor {
	d := kind.New("item")
	d.Connection = &kind.Connection{}
	return d
}

// made returns a value with the warnings.
func made(key string, warnings ...string) *graph.Value {
	v := &graph.Value{Key: key, Kind: described()}
	v.SetDeclared(&value.Declared{Warnings: warnings})
	return v
}

func changes(cs ...intent.Change) intent.Changes {
	return intent.Changes{All: slices.Values(cs), Count: len(cs)}
}

func TestAChangeSetsTheIntentOfItsKey(t *testing.T) {
	refused := errors.New("refused")
	tests := []struct {
		name    string
		change  intent.Change
		before  bool // the key has a desired value
		desired bool
		unwants bool
	}{
		{"a value is desired", intent.Change{Key: "a", Value: made("a")}, false, true, false},
		{"a value replaces another", intent.Change{Key: "a", Value: made("a")}, true, true, false},
		{"without value", intent.Change{Key: "a"}, true, false, true},
		{"refused: the desired value stays", intent.Change{Key: "a", Err: refused, Keep: true}, true, true, false},
		{"refused: there is none to keep", intent.Change{Key: "a", Err: refused, Keep: true}, false, false, false},
		{"refused without Keep", intent.Change{Key: "a", Err: refused}, true, false, true},
		{"refused with the last valid value", intent.Change{Key: "a", Err: refused, Value: made("a")}, false, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := graph.New()
			if tt.before {
				changes(intent.Change{Key: "a", Value: made("a")}).Apply(g)
			}
			if got := len(slices.Collect(changes(tt.change).Unwanted(g))) > 0; got != tt.unwants {
				t.Errorf("the change removes a desired value: %v, want %v", got, tt.unwants)
			}
			changes(tt.change).Apply(g)
			if g.Wants("a") != tt.desired {
				t.Errorf("a is desired: %v, want %v", !tt.desired, tt.desired)
			}
			if n := g.Node("a"); tt.change.Err != nil && (n == nil || !errors.Is(n.Err(), refused)) {
				t.Errorf("a refused key has the node %v without the reason", n)
			}
		})
	}
}

func TestReplaceRemovesTheOthers(t *testing.T) {
	g := graph.New()
	changes(intent.Change{Key: "a", Value: made("a")}, intent.Change{Key: "b", Value: made("b")}).Apply(g)
	only := changes(intent.Change{Key: "b", Value: made("b")})
	only.Replace = true
	only.Apply(g)
	if g.Wants("a") || !g.Wants("b") {
		t.Errorf("a is desired: %v, b is desired: %v; want only b", g.Wants("a"), g.Wants("b"))
	}
}

func TestAWarningIsLoggedOnce(t *testing.T) {
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, nil))
	g := graph.New()
	for _, warnings := range [][]string{{"mtu: ignored"}, {"mtu: ignored"}, {}, {"mtu: ignored"}} {
		cs := changes(intent.Change{Key: "a", Value: made("a", warnings...)})
		cs.Warn(g, log)
		cs.Apply(g)
	}
	if got := strings.Count(text.String(), "mtu: ignored"); got != 2 {
		t.Errorf("the warning is logged %d times, want 2: it was gone in between\n%s", got, &text)
	}
}
