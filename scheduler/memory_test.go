package scheduler_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"maps"
	"slices"
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

func (n notebook) Save(changes iter.Seq2[string, []byte]) error {
	maps.Insert(n, changes)
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
				txn.Changes = append(txn.Changes, v.Change())
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
		Name: "arp", Model: models.For[*l3.ARPEntry](), Connection: "net",
		Create: func(_ context.Context, key string, v *l3.ARPEntry) (none, error) {
			return none{}, net.do("create", key, func() {})
		},
		Delete: func(_ context.Context, key string, _ *l3.ARPEntry, _ none) error {
			return net.do("delete", key, func() {})
		},
	})
	must(t, err)
}

// TestMemoryOfReferences restarts a scheduler while what a reference refers to changes, over a
// southbound that does not say whose its values are: what was applied is known to be ours.
func TestMemoryOfReferences(t *testing.T) {
	const reference = "alloc:net1"
	refersTo, stands, memory := "", map[string]bool{"10.0.0.9": true}, notebook{}
	life := func(address string, want ...string) {
		refersTo = address
		synctest.Test(t, func(t *testing.T) {
			s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: memory})
			plain := func(v *l3.ARPEntry) *l3.ARPEntry {
				if v.GetIpAddress() != reference {
					return v
				}
				return &l3.ARPEntry{Interface: v.GetInterface(), IpAddress: refersTo}
			}
			_, err := scheduler.Register(s, scheduler.Descriptor[*l3.ARPEntry, struct{}]{
				Name: "arp", Model: models.For[*l3.ARPEntry](),
				Resolve: func(_ string, v *l3.ARPEntry) *l3.ARPEntry { return plain(v) },
				Create: func(_ context.Context, _ string, v *l3.ARPEntry) (struct{}, error) {
					stands[plain(v).GetIpAddress()] = true
					return struct{}{}, nil
				},
				Delete: func(_ context.Context, _ string, v *l3.ARPEntry, _ struct{}) error {
					delete(stands, plain(v).GetIpAddress())
					return nil
				},
				Retrieve: func(_ context.Context, wanted []scheduler.Desired[*l3.ARPEntry]) scheduler.Retrieved[*l3.ARPEntry, struct{}] {
					return func(yield func(scheduler.Found[*l3.ARPEntry, struct{}], error) bool) {
						for _, address := range slices.Sorted(maps.Keys(stands)) {
							f := scheduler.Found[*l3.ARPEntry, struct{}]{Value: &l3.ARPEntry{Interface: "if1", IpAddress: address}, OwnerUnknown: true}
							for _, w := range wanted {
								if plain(w.Value).GetIpAddress() == address {
									f.Value, f.OwnerUnknown = w.Value, false
								}
							}
							yield(f, nil)
						}
					}
				},
			})
			must(t, err)
			defer begin(t, s)()
			txn := scheduler.Txn{Refresh: true, Replace: true}
			for _, ip := range want {
				v, err := s.Value("config/linux/l3/v2/arp/if1/"+ip, &l3.ARPEntry{Interface: "if1", IpAddress: ip})
				must(t, err)
				txn.Changes = append(txn.Changes, v.Change())
			}
			mustCommit(t, s, txn)
		})
	}
	expect := func(want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(stands)); !slices.Equal(got, want) {
			t.Errorf("there are %v, want %v", got, want)
		}
	}
	life("10.0.0.1", reference)
	expect("10.0.0.1", "10.0.0.9")
	life("10.0.0.2", reference)
	expect("10.0.0.2", "10.0.0.9")
	life("10.0.0.2", reference, "10.0.0.7")
	life("10.0.0.3", "10.0.0.7")
	expect("10.0.0.7", "10.0.0.9")
	life("10.0.0.3")
	expect("10.0.0.9")
	if len(memory) != 0 {
		t.Errorf("still remembered: %v", memory)
	}
}

// TestPartsAreRemembered kills an agent in the middle of the verbs of a value that is two items: what is left is ours, and
// goes. The same items of somebody else stay.
func TestPartsAreRemembered(t *testing.T) {
	type found = scheduler.Found[*l3.ARPEntry, struct{}]
	for _, dies := range []string{"create", "delete", ""} {
		stands, memory := map[string]bool{"3": true}, notebook{}
		life := func(t *testing.T, want ...string) {
			s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: memory})
			partsOf := func(v *l3.ARPEntry) []string { return strings.Split(v.GetIpAddress(), "+") }
			killed := func(verb string, v *l3.ARPEntry) {
				if verb == dies && len(partsOf(v)) > 1 { // what follows is not seen by the next life
					stands, memory = maps.Clone(stands), maps.Clone(memory)
				}
			}
			_, err := scheduler.Register(s, scheduler.Descriptor[*l3.ARPEntry, struct{}]{
				Name: "arp", Model: models.For[*l3.ARPEntry](),
				Parts: func(_ string, v *l3.ARPEntry) (out []*l3.ARPEntry) {
					for _, part := range partsOf(v) {
						out = append(out, &l3.ARPEntry{Interface: "if1", IpAddress: part})
					}
					return out
				},
				Create: func(_ context.Context, _ string, v *l3.ARPEntry) (struct{}, error) {
					mine := stands
					for _, part := range partsOf(v) {
						mine[part] = true
						killed("create", v)
					}
					return struct{}{}, nil
				},
				Delete: func(_ context.Context, _ string, v *l3.ARPEntry, _ struct{}) error {
					mine := stands
					for _, part := range partsOf(v) {
						delete(mine, part)
						killed("delete", v)
					}
					return nil
				},
				Retrieve: func(context.Context, []scheduler.Desired[*l3.ARPEntry]) scheduler.Retrieved[*l3.ARPEntry, struct{}] {
					return func(yield func(found, error) bool) {
						rest := maps.Clone(stands)
						if rest["1"] && rest["2"] {
							delete(rest, "1")
							delete(rest, "2")
							rest["1+2"] = true
						}
						for _, address := range slices.Sorted(maps.Keys(rest)) {
							yield(found{Value: &l3.ARPEntry{Interface: "if1", IpAddress: address}, OwnerUnknown: true}, nil)
						}
					}
				},
			})
			must(t, err)
			defer begin(t, s)()
			txn := scheduler.Txn{Refresh: true, Replace: true}
			for _, ip := range want {
				v, err := s.Value("config/linux/l3/v2/arp/if1/"+ip, &l3.ARPEntry{Interface: "if1", IpAddress: ip})
				must(t, err)
				txn.Changes = append(txn.Changes, v.Change())
			}
			mustCommit(t, s, txn)
		}
		for _, want := range [][]string{{"1+2"}, {}, {}} {
			synctest.Test(t, func(t *testing.T) { life(t, want...) })
		}
		if got := slices.Sorted(maps.Keys(stands)); !slices.Equal(got, []string{"3"}) || len(memory) > 0 {
			t.Errorf("killed in %q: there are %v, and %v is remembered", dies, got, memory)
		}
	}
}
