package history_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/testkit/draw"
)

// told is a history as text, one event a line: "w a=1 b=2" writes, "w! a=1" leaves
// nothing else, "x a=1 b-" is seen by x, "x! a=1" is all that x sees.
func told(t *testing.T, text string) history.History {
	t.Helper()
	var h history.History
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		words := strings.Fields(line)
		who, all := strings.CutSuffix(words[0], "!")
		at := time.Duration(i) * time.Second
		var changes []history.Change
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(strings.TrimSuffix(word, "-"), "=")
			changes = append(changes, history.Change{Key: key, Text: value})
		}
		if who == "w" {
			h.Writes = append(h.Writes, history.Write{From: at, To: at, Changes: changes, All: all})
		} else {
			h.Seen = append(h.Seen, history.Seen{At: at, Who: who, Changes: changes, All: all})
		}
	}
	return h
}

func TestValidators(t *testing.T) {
	tests := []struct {
		name, history string
		want          string // of Ordered, Atomic and NoPhantom, a line each
	}{
		{"as it was", "w a=1\nx a=1\nw a=2\nx a=2\nw a-\nx a-", ""},
		{"left out", "w a=1\nw a=2\nw a=3\nx a=3", ""},
		{"gone and back, unseen", "w a=1\nx a=1\nw a-\nw a=2\nx a=2", ""},
		{"gone, late", "w a=1\nx a=1\nw a-\nw a=2\nx a-\nx a=2", ""},
		{"told twice", "w a=1\nx a=1\nx a=1", ""},
		{"back in time", "w a=1\nw a=2\nx a=2\nx a=1", `ordered: x at 3s: a: "1" is seen after "2"`},
		{"back in time by another", "w a=1\nw a=2\nx a=2\ny a=1", ""},
		{"made up", "w a=1\nx a=7", `ordered: x at 1s: a: "7" was never written`},
		{"foreseen", "x a=1\nw a=1", `ordered: x at 0s: a: "1" is seen before it is written`},
		{"removed while held", "w a=1\nx a=1\nx a-", `no phantom delete: x at 2s: a: removed, while the store held "1" and the observer had "1"`},
		{"removed for what was before", "w a=1\nw a-\nw a=2\nx a=2\nx a-", `no phantom delete: x at 4s: a: removed, while the store held "2" and the observer had "2"`},
		{"removed before it goes", "w a=1\nx a=1\nx a-\nw a-", `no phantom delete: x at 2s: a: removed, while the store held "1" and the observer had "1"`},
		{"left out of all", "w a=1\nw b=1\nx a=1 b=1\nx! a=1", `no phantom delete: x at 3s: b: removed, while the store held "1" and the observer had "1"`},
		{"wiped", "w a=1\nx a=1\nw!\nx a-", ""},
		{"restored", "w a=1\nw a=2\nx a=2\nw! a=1\nx a=1", ""},
		{"restored and gone", "w a=1\nx a=1\nw b=1\nx b=1\nw! a=1\nx b-", ""},
		{"wiped, and doubted", "w a=1 b=1\nx a=1 b=1\nw a=2 b=2\nw!\nw a=3\nx a=3\nx b-", ""},
		{"a group", "w a=1 b=1\nx a=1 b=1\nw a=2 b-\nx a=2 b-", ""},
		{"torn", "w a=1 b=1\nx a=1", `atomic groups: x at 1s: b: is as before the write at 0s, and a is not`},
		{"torn by a delete", "w a=1 b=1\nx a=1 b=1\nw a=2 b-\nx a=2", `atomic groups: x at 3s: b: is as before the write at 2s, and a is not`},
		{"overwritten in part", "w a=1 b=1\nw a=2\nx a=2 b=1", ""},
		{"torn and overwritten", "w a=1 b=1\nw a=2\nx a=2", `atomic groups: x at 2s: b: is as before the write at 0s, and a is not`},
		{"nothing before and nothing after", "w a=1 b-\nx a=1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, v := range violations(told(t, tt.history)) {
				got = append(got, v.Error())
			}
			if text := strings.Join(got, "\n"); text != tt.want {
				t.Errorf("got\n%s\nwant\n%s", text, tt.want)
			}
		})
	}
}

func violations(h history.History) []history.Violation {
	return append(append(history.Ordered(h), history.Atomic(h)...), history.NoPhantom(h)...)
}

func TestComplete(t *testing.T) {
	held := map[string]string{"a": "1", "b": "1"}
	if v := history.Complete(held, maps.Clone(held)); len(v) > 0 {
		t.Error(v)
	}
	for _, standing := range []map[string]string{{"a": "1"}, {"a": "1", "b": "2"}, {"a": "1", "b": "1", "c": "1"}} {
		if v := history.Complete(held, standing); len(v) != 1 || v[0].Guarantee != history.GuaranteeComplete {
			t.Errorf("of %v: %v", standing, v)
		}
	}
}

// An observer that is told the store's state at any moments is never accused.
func TestNoFalseAlarm(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		var h history.History
		store, told := map[string]string{}, map[string]string{}
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			at := time.Duration(i)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2:
				diff := differences(told, store)
				h.Seen = append(h.Seen, history.Seen{At: at, Who: "x", Changes: diff})
				told = maps.Clone(store)
			case 3:
				h.Seen = append(h.Seen, history.Seen{At: at, Who: "x", Changes: differences(nil, store), All: true})
				told = maps.Clone(store)
			case 4:
				store = map[string]string{}
				h.Writes = append(h.Writes, history.Write{From: at, To: at, All: true})
			default:
				h.Writes = append(h.Writes, history.Write{From: at, To: at, Changes: write(t, store, i)})
			}
		}
		if v := violations(h); len(v) > 0 {
			t.Fatalf("%v\nof %+v", v, h)
		}
	})
}

func write(t *rapid.T, store map[string]string, n int) (out []history.Change) {
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID).Draw(t, "keys") {
		c := history.Change{Key: key, Text: fmt.Sprint(n)}
		if rapid.Bool().Draw(t, "delete") {
			c.Text = ""
		}
		if store[key] = c.Text; c.Text == "" {
			delete(store, key)
		}
		out = append(out, c)
	}
	return out
}

func differences(old, new map[string]string) (out []history.Change) {
	for key, text := range new {
		if old[key] != text {
			out = append(out, history.Change{Key: key, Text: text})
		}
	}
	for key := range old {
		if new[key] == "" {
			out = append(out, history.Change{Key: key})
		}
	}
	return out
}

// Where the store became another one, a removal may be seen after the rest of its group, and a
// value may not.
func TestDistrustedRemovalsMayBeLate(t *testing.T) {
	for text, want := range map[string]int{
		"w a=1 b=1\nx a=1 b=1\nw a=2 b-\nx a=2":               0,
		"w a=1 b=1\nx a=1 b=1\nw a=2 b=2\nw b-\nx a=2":        0,
		"w a=1 b=1\nx a=1 b=1\nw a=2 b=2\nx a=2":              1,
		"w a=1 b=1\nx a=1 b=1\nw a=2 b=2\nx a=2\nw b-\nx a=2": 1,
	} {
		h := told(t, text)
		h.Distrusted = true
		if got := history.Atomic(h); len(got) != want {
			t.Errorf("%q: %v, want %d violations", text, got, want)
		}
	}
}
