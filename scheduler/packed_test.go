package scheduler

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/size"
)

// TestPackedRecords packs large records of the history, and unpacks them for a reader.
func TestPackedRecords(t *testing.T) {
	wanted := func(i int) Change {
		key := fmt.Sprint("config/", i)
		return Change{Key: key, Value: &Value{v: &graph.Value{Key: key, Data: &interfaces.Interface{Name: key}}}}
	}
	refused := func(i int) Change { return Change{Key: fmt.Sprint("config/", i), Err: errors.New("refused")} }
	record := func(n int, change func(int) Change) *Record {
		r := &Record{Seq: 7, Description: "large"}
		for i := range n {
			c := change(i)
			r.Values = append(r.Values, c)
			r.Executed = append(r.Executed, Operation{
				Verb: Create, Key: c.Key, NewState: Configured, NewErr: c.Err, Order: uint64(i + 1), Meta: i, Waits: []string{c.Key},
			})
		}
		return r
	}
	// making has operations that make the values of r actual, and others of the same keys.
	making := func(r *Record) *Record {
		for i := range r.Executed {
			o := &r.Executed[i]
			o.of = r.Values[i].Value.v
			o.New = r.Values[i].Value.v.Data.(*interfaces.Interface)
			switch i % 10 {
			case 7:
				o.Verb, o.Old, o.New, o.of = Delete, o.New, nil, nil
			case 8:
				o.New, o.of = &interfaces.Interface{Name: "another value"}, nil
			case 9:
				o.Key, o.of = "derived/"+o.Key, nil
			}
		}
		r.Planned = slices.Clone(r.Executed)
		slices.Reverse(r.Planned)
		r.Values = append(r.Values, wanted(0), r.Values[1]) // several values of one key
		return r
	}
	if (&keptRecord{Record: record(manyOperations-1, wanted)}).isLarge() {
		t.Error("a small record counts as large")
	}
	for name, r := range map[string]*Record{
		"values": record(manyOperations, wanted), "made values": making(record(manyOperations, wanted)), "refused values": record(manyOperations, refused),
	} {
		var types size.Types
		kept := &keptRecord{Record: r, bytes: r.size(&types)}
		packed, _ := kept.packed()
		if !kept.isLarge() || packed.bytes > kept.bytes*3/4 || packed.bytes < kept.bytes/10 {
			t.Errorf("%s: %d bytes are packed into %d", name, kept.bytes, packed.bytes)
		}
		if got := packed.unpacked(); !reflect.DeepEqual(got, r) {
			t.Errorf("%s: the record differs after it was packed", name)
		}
		for _, k := range []*keptRecord{kept, packed} {
			head, all := k.head(2)
			if all != manyOperations || !reflect.DeepEqual(head.Executed[:2], r.Executed[:2]) {
				t.Errorf("%s: of %d operations, the first ones are %v", name, all, head.Executed)
			}
		}
	}
}

// TestEachFieldIsPacked packs operations of which one field is set, each in turn.
func TestEachFieldIsPacked(t *testing.T) {
	samples := map[string]any{
		"string": "text", "scheduler.Verb": Delete, "scheduler.State": Pending, "bool": true, "uint64": uint64(1) << 40, "[]string": []string{"a", "b"},
		"error": errors.New("broken"), "interface {}": 7, "protoreflect.ProtoMessage": &interfaces.Interface{Name: "a"},
	}
	var ops []Operation
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Operation]()) {
		if !f.IsExported() {
			continue
		}
		var o Operation
		reflect.ValueOf(&o).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(samples[f.Type.String()]))
		ops = append(ops, o, Operation{})
	}
	packed := pack(ops)
	if got := packed.unpack(len(ops)); !reflect.DeepEqual(got, ops) {
		t.Errorf("got %v; want %v", got, ops)
	}
}

// TestZeroFieldsTakeNoMemory packs operations of which one field is set.
func TestZeroFieldsTakeNoMemory(t *testing.T) {
	ops := make([]Operation, 1000)
	for i := range ops {
		ops[i].Order = uint64(i + 1)
	}
	packed := pack(ops)
	if bytes := packed.bytes(); bytes != 8*len(ops) {
		t.Errorf("%d operations take %d bytes; expected 8 each", len(ops), bytes)
	}
}

func BenchmarkPack(b *testing.B) {
	ops := make([]Operation, 1000)
	for i := range ops {
		ops[i] = Operation{Verb: Create, Key: "key", Order: uint64(i + 1), Meta: i}
	}
	for b.Loop() {
		pack(ops)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ops)), "ns/operation")
}
