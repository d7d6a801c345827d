package ifindex

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// text prints the whole table: names, holders, and reported indexes.
func (t *Table) text() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		e := t.byName[name]
		out = append(out, fmt.Sprintf("%s=%d:%s", name, e.Index, e.Life))
	}
	for _, index := range slices.Sorted(maps.Keys(t.byIndex)) {
		out = append(out, fmt.Sprintf("%d(%s)", index, t.byIndex[index].Name))
	}
	for _, index := range slices.Sorted(maps.Keys(t.reported)) {
		out = append(out, fmt.Sprintf("!%d", index))
	}
	return strings.Join(out, " ")
}

func TestTransitions(t *testing.T) {
	create := func(name string, index uint32) func(*Table) {
		return func(t *Table) { t.Claim(name, index); t.Tagged(name, index, true) }
	}
	for _, c := range []struct {
		name  string
		steps []func(*Table)
		want  string
	}{
		{"claimed", []func(*Table){func(t *Table) { t.Claim("a", 5) }}, "5(a)"},
		{"created", []func(*Table){create("a", 5)}, "a=5:new 5(a)"},
		{"used", []func(*Table){create("a", 5), func(t *Table) { t.Used("a") }}, "a=5:live 5(a)"},
		{"created again elsewhere", []func(*Table){create("a", 5), create("a", 6)}, "a=6:new 6(a)"},
		{"deleting", []func(*Table){create("a", 5), func(t *Table) { t.Deleting("a", 5) }}, "a=5:deleting 5(a)"},
		{"kept", []func(*Table){create("a", 5), func(t *Table) { t.Deleting("a", 5); t.Kept("a") }}, "a=5:live 5(a)"},
		{"deleted", []func(*Table){create("a", 5), func(t *Table) { t.Deleting("a", 5); t.Deleted("a", 5) }}, "a=5:deleted"},
		{"deleted, and the index given away", []func(*Table){create("a", 5), create("b", 5), func(t *Table) { t.Deleted("a", 5) }}, "a=5:deleted b=5:new 5(b)"},
		{"read after deleted", []func(*Table){create("a", 5), func(t *Table) { t.Deleted("a", 5); t.Replace(nil) }}, ""},
		{"gone", []func(*Table){create("a", 5), func(t *Table) { t.Replace(nil) }}, "a=5:gone"},
		{"gone, and the index given away", []func(*Table){create("a", 5), func(t *Table) { t.Replace([]Entry{{Name: "b", Index: 5}}) }}, "a=5:gone b=5:live 5(b) !5"},
		{"gone and back", []func(*Table){create("a", 5), func(t *Table) { t.Replace(nil); t.Replace([]Entry{{Name: "a", Index: 6}}) }}, "a=6:live 6(a) !6"},
		{"read without a tag", []func(*Table){func(t *Table) { t.Replace([]Entry{{Index: 3}}) }}, "3() !3"},
		{"event of a new interface", []func(*Table){func(t *Table) { t.Reported(3, true) }}, "3() !3"},
		{"events of an interface without a name", []func(*Table){func(t *Table) { t.Reported(3, true); t.Reported(3, false) }}, ""},
		{"late event of the interface before", []func(*Table){create("a", 5), func(t *Table) { t.Reported(5, false) }}, "a=5:new 5(a)"},
		{"restarted", []func(*Table){create("a", 5), func(t *Table) { t.Reported(3, true); t.Restarted() }}, ""},
	} {
		var table Table
		for _, step := range c.steps {
			step(&table)
		}
		if got := table.text(); got != c.want {
			t.Errorf("%s: the table is %q, want %q", c.name, got, c.want)
		}
	}
}

func TestLookups(t *testing.T) {
	var table Table
	table.Replace([]Entry{{Name: "live", Index: 1}, {Name: "gone", Index: 2}, {Name: "deleting", Index: 3}, {Name: "deleted", Index: 4}, {Index: 5}})
	if !table.InUse() {
		t.Error("a VPP with tags is not in use")
	}
	table.Replace([]Entry{{Name: "live", Index: 1}, {Name: "other", Index: 2}, {Name: "deleting", Index: 3}, {Name: "deleted", Index: 4}, {Index: 5}})
	table.Deleting("deleting", 3)
	table.Deleted("deleted", 4)
	table.Claim("claimed", 6)
	for name, want := range map[string]string{
		"live": "1 true live", "gone": "2 true other", "deleting": "3 true deleting", "deleted": "0 false ", "claimed": "0 false ", "unknown": "0 false ",
	} {
		index, known := table.Index(name)
		if got := fmt.Sprint(index, known, " ", table.Holder(index)); got != want {
			t.Errorf("%s: index, known and holder are %q, want %q", name, got, want)
		}
	}
	if got, want := table.Indexes(), map[string]uint32{"live": 1, "gone": 2, "other": 2, "deleting": 3}; !maps.Equal(got, want) {
		t.Errorf("the indexes are %v, want %v", got, want)
	}
	if got, want := table.ReportedIndexes(), map[uint32]bool{1: true, 2: true, 3: true, 5: true}; !maps.Equal(got, want) {
		t.Errorf("the reported indexes are %v, want %v", got, want)
	}
	if !table.LostByUs("deleting", 3) || !table.LostByUs("deleted", 4) || !table.LostByUs("live", 2) || table.LostByUs("live", 1) || table.LostByUs("unknown", 1) {
		t.Error("LostByUs is wrong")
	}
	if !table.Has("live", 1) || table.Has("live", 2) || table.Has("gone", 2) || table.Has("deleting", 3) || table.Has("deleted", 4) || table.Has("unknown", 1) {
		t.Error("Has is wrong")
	}
	if table.Holder(6) != "claimed" || table.Holder(5) != "" {
		t.Error("Holder is wrong of untagged interfaces")
	}
}

func TestUsedOnce(t *testing.T) {
	var table Table
	table.Tagged("a", 1, true)
	if !table.Used("a") || table.Used("a") || table.Used("b") {
		t.Error("an interface is New just until it is used")
	}
}

func TestInUseIsOfTheFirstDump(t *testing.T) {
	var table Table
	table.Replace(nil)
	table.Replace([]Entry{{Name: "a", Index: 1}})
	if table.InUse() {
		t.Error("tags that came later count")
	}
	table.Restarted()
	table.Replace([]Entry{{Name: "a", Index: 1}})
	if !table.InUse() {
		t.Error("the first dump after a restart does not count")
	}
}
