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
			o.New = r.Values[i].Value.v.Data.(*interfaces.Interface)
			switch i % 10 {
			case 7:
				o.Verb, o.Old, o.New = Delete, o.New, nil
			case 8:
				o.New = &interfaces.Interface{Name: "another value"}
			case 9:
				o.Key = "derived/" + o.Key
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
		packed, _ := kept.packed(&types)
		if !kept.isLarge() || packed.bytes > kept.bytes*2/3 || packed.bytes < kept.bytes/10 {
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
