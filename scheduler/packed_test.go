package scheduler

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/history"
	"github.com/keyplane/keyplane/scheduler/internal/size"
)

// TestManyValuesArePacked keeps records of many values in the history, and shows them to a reader.
func TestManyValuesArePacked(t *testing.T) {
	wanted := func(i int) Change {
		key := fmt.Sprint("config/", i)
		return Change{Key: key, Value: &Value{v: &graph.Value{Key: key, Data: &interfaces.Interface{Name: key}}}}
	}
	refused := func(i int) Change { return Change{Key: fmt.Sprint("config/", i), Err: errors.New("refused")} }
	for name, c := range map[string]struct {
		n      int
		change func(int) Change
		packed bool
	}{
		"few": {manyValues - 1, wanted, false}, "many": {manyValues, wanted, true}, "refused": {manyValues, refused, false},
	} {
		r := &Record{Seq: 7, Description: name}
		for i := range c.n {
			r.Values = append(r.Values, c.change(i))
		}
		if c.packed {
			r.Values = append(r.Values, r.Values[0]) // several values of one key
		}
		shared := *r
		var types size.Types
		k, bytes := keep(&shared, &types)
		if whole := r.size(&types); (bytes < whole*9/10) != c.packed || (k.values != nil) != c.packed {
			t.Errorf("%s: %d bytes are kept in %d", name, whole, bytes)
		}
		if got := k.whole(); !reflect.DeepEqual(got, r) {
			t.Errorf("%s: the record differs after it was kept", name)
		}
	}
}

// samples are operations of which one field is set, each in turn, and those of values that are made.
func samples() (ops []Operation) {
	of := map[string]any{
		"string": "text", "scheduler.Verb": Delete, "scheduler.State": Pending, "bool": true, "uint64": uint64(1) << 40, "[]string": []string{"a", "b"},
		"error": errors.New("broken"), "interface {}": 7, "protoreflect.ProtoMessage": &interfaces.Interface{Name: "a"},
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Operation]()) {
		if !f.IsExported() {
			continue
		}
		var o Operation
		reflect.ValueOf(&o).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(of[f.Type.String()]))
		ops = append(ops, o, Operation{})
	}
	m := &interfaces.Interface{Name: "b"}
	v := &graph.Value{Key: "config/b", Data: m}
	return append(ops, Operation{Key: v.Key, New: m, of: v}, Operation{Key: "another", New: m}, Operation{Key: v.Key})
}

// listOf returns all operations.
func listOf(p Operations) (out []Operation) {
	for _, o := range p.All() {
		out = append(out, o)
	}
	return out
}

func TestOperationsHaveEachField(t *testing.T) {
	want := samples()
	p := Operations{}.With(want...)
	if got := listOf(p); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
	for i := range want {
		p.set(i, &want[len(want)-1-i])
	}
	slices.Reverse(want)
	if got := listOf(p); !reflect.DeepEqual(got, want) {
		t.Errorf("replaced: got %v; want %v", got, want)
	}
	p.grow(1000)
	p.clip()
	for first := range len(want) {
		if got := listOf(p.Part(first, 2)); !reflect.DeepEqual(got, want[first:min(len(want), first+2)]) {
			t.Errorf("two from %d: got %v", first, got)
		}
	}
	if left := p.without(func(o Operation) bool { return reflect.DeepEqual(o, Operation{}) }); left.Len() >= p.Len() || left.Any(func(o Operation) bool { return reflect.DeepEqual(o, Operation{}) }) {
		t.Errorf("without those that are zero: %v", listOf(left))
	}
}

// TestKeptOperations: what the history keeps refers to no error, and the caller's operations stay as they are.
func TestKeptOperations(t *testing.T) {
	long := strings.Repeat("x", mostKeyText+1)
	v := &graph.Value{Key: long, Data: &interfaces.Interface{Name: "b"}}
	ops := []Operation{
		{Key: "a", NewErr: errors.New("new"), OldErr: errors.New("old"), Waits: []string{"short", long}},
		{Key: long, New: v.Data.(*interfaces.Interface), of: v},
		{Key: long},
	}
	p := Operations{}.With(ops...)
	kept := p.kept()
	if got := listOf(p); !reflect.DeepEqual(got, ops) {
		t.Errorf("the operations are now %v", got)
	}
	for i, o := range kept.All() {
		if len(o.Key) > mostKeyText+100 || o.New != ops[i].New || errors.Is(o.NewErr, ops[0].NewErr) && o.NewErr != nil || len(strings.Join(o.Waits, "")) > history.MaxText+100 {
			t.Errorf("kept is %+v", o)
		}
		if fmt.Sprintf("%v %v", o.NewErr, o.OldErr) != fmt.Sprintf("%v %v", ops[i].NewErr, ops[i].OldErr) {
			t.Errorf("kept are the errors %v, %v", o.NewErr, o.OldErr)
		}
	}
}

// TestZeroFieldsTakeNoMemory has operations of which only that is set which all have.
func TestZeroFieldsTakeNoMemory(t *testing.T) {
	ops := make([]Operation, 1000)
	for i := range ops {
		ops[i].Order = uint64(i + 1)
	}
	p := Operations{}.With(ops...)
	var types size.Types
	if bytes := p.bytes(&size.Record{Types: &types}, true); bytes != 24*len(ops) {
		t.Errorf("%d operations take %d bytes; expected 24 each", len(ops), bytes)
	}
}
