package scheduler_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// notebook is a Memory in memory.
type notebook map[string][]byte

func (n notebook) Load() iter.Seq2[string, []byte] { return maps.All(maps.Clone(n)) }

func (n notebook) Save(changes map[string][]byte) error {
	maps.Copy(n, changes)
	maps.DeleteFunc(n, func(_ string, v []byte) bool { return v == nil })
	return nil
}

// TestMemory restarts a scheduler over a southbound that does not say whose its
// values are, and one that cannot be read back.
func TestMemory(t *testing.T) {
	net := &fakeNet{out: &bytes.Buffer{}, stands: map[string]proto.Message{}, foreign: map[string]bool{}, broken: map[string]string{}, unknown: true}
	memory := notebook{}
	life := func(changes ...string) {
		synctest.Test(t, func(t *testing.T) {
			s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: memory, Concurrency: 1})
			net.descriptors(t, s)
			unreadable(t, s, net)
			defer begin(t, s)()
			txn := scheduler.Txn{Refresh: true, Replace: true}
			for _, name := range changes {
				m := message(name, nil)
				if strings.HasPrefix(name, "arp/") {
					m = &l3.ARPEntry{}
				}
				v, err := s.Value(key(name), m)
				must(t, err)
				txn.Changes = append(txn.Changes, scheduler.Want(v))
			}
			net.write("-- life\n")
			mustCommit(t, s, txn)
		})
	}
	net.set([]string{"stands", "foreign"})
	life("if1", "if2", "arp/if1/10.0.0.1")
	net.set([]string{"stands", "other"})
	life("if1")
	life()
	want := `-- life
  create if1
  create if2
  create arp/if1/10.0.0.1
-- life
  delete arp/if1/10.0.0.1
  delete if2
-- life
  delete if1
`
	got := strings.ReplaceAll(net.out.String(), "config/linux/l3/v2/", "")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(memory) != 0 {
		t.Errorf("still remembered: %v", memory)
	}
}

// unreadable registers neighbours, without Retrieve.
func unreadable(t *testing.T, s *scheduler.Scheduler, net *fakeNet) {
	type none = struct{}
	_, err := scheduler.Register(s, scheduler.Descriptor[*l3.ARPEntry, none]{
		Name: "arp", Model: models.For[*l3.ARPEntry](), Southbound: "net",
		Create: func(_ context.Context, key string, v *l3.ARPEntry) (none, error) {
			return none{}, net.do("create", key, func() {})
		},
		Delete: func(_ context.Context, key string, _ *l3.ARPEntry, _ none) error {
			return net.do("delete", key, func() {})
		},
	})
	must(t, err)
}
