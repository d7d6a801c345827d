package scheduler_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// TestVerboseLogsWhatIsReadBack reads back what stands, ours and not.
func TestVerboseLogsWhatIsReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		net := newFakeNet()
		net.set([]string{"stands", "if1", "mtu=9000"})
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		net.descriptors(t, s)
		defer begin(t, s)()
		mustCommit(t, s, scheduler.Txn{Refresh: true})
		if log.Len() > 0 {
			t.Errorf("without being asked to, it logs\n%s", &log)
		}
		mustCommit(t, s, scheduler.Txn{Refresh: true, Verbose: true})
		for _, want := range []string{
			`descriptor=interface key=` + key("if1") + ` ours=true value="{ name:\"if1\" type:DUMMY phys_address:\"02:00:00:00:00:01\" mtu:9000 }"`,
			`descriptor=interface key=` + key("eth0") + ` ours=false`,
		} {
			if n := strings.Count(log.String(), want); n != 1 {
				t.Errorf("%d times %s in\n%s", n, want, &log)
			}
		}
	})
}

// What is found as the very message that is wanted costs nothing but that.
func TestFoundAsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type item = *interfaces.Interface
		type found = scheduler.Found[item, struct{}]
		looks, verbs, copied := 0, 0, false
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		_, err := scheduler.Register(s, scheduler.Descriptor[item, struct{}]{
			Name: "interface", Model: models.For[item](),
			Validate: func(string, item) error { looks++; return nil },
			Create:   func(context.Context, string, item) (struct{}, error) { verbs++; return struct{}{}, nil },
			Delete:   func(context.Context, string, item, struct{}) error { verbs++; return nil },
			Retrieve: func(_ context.Context, wanted []scheduler.Desired[item]) iter.Seq2[found, error] {
				return func(yield func(found, error) bool) {
					for _, w := range wanted {
						if copied {
							w.Value = proto.Clone(w.Value).(item)
						}
						if !yield(found{Key: w.Key, Value: w.Value}, nil) {
							return
						}
					}
				}
			},
		})
		must(t, err)
		defer begin(t, s)()
		v, err := s.Value(key("if1"), &interfaces.Interface{Name: "if1", Type: interfaces.Interface_DUMMY})
		must(t, err)
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{v.Change()}, Refresh: true}) // it is coming
		mustCommit(t, s, scheduler.Txn{Refresh: true})                                          // it is there
		if looks != 1 || verbs != 0 {
			t.Errorf("looked at %d times, %d verbs", looks, verbs)
		}
		copied = true
		mustCommit(t, s, scheduler.Txn{Refresh: true})
		if looks != 2 || verbs != 0 {
			t.Errorf("as a copy it was looked at %d times, %d verbs", looks, verbs)
		}
	})
}

// A resync that reads for so long that other work begins meanwhile publishes what it has found so far. Its record has that before the
// operations that follow, so that it ends as they do.
func TestRecordOfASlowResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		there := map[string]note{}
		register := func(name string, takes time.Duration) {
			_, err := scheduler.Register(s.OnConnection("net"), scheduler.Descriptor[note, struct{}]{
				Name: name, Prefix: name + "/",
				Create: func(_ context.Context, key string, v note) (struct{}, error) { there[key] = v; return struct{}{}, nil },
				Update: func(_ context.Context, key string, _, v note, _ struct{}) (struct{}, error) {
					there[key] = v
					return struct{}{}, nil
				},
				Delete: func(context.Context, string, note, struct{}) error { return nil },
				Retrieve: func(context.Context, []scheduler.Desired[note]) iter.Seq2[noteFound, error] {
					return func(yield func(noteFound, error) bool) {
						<-time.After(takes)
						for key, v := range there {
							if strings.HasPrefix(key, name+"/") && !yield(noteFound{Key: key, Value: v}, nil) {
								return
							}
						}
					}
				},
			})
			must(t, err)
		}
		register("fast", 0)
		register("slow", time.Second)
		defer begin(t, s)()
		v, err := s.Value("fast/1", wrapperspb.String("declared"))
		must(t, err)
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
		there["fast/1"] = wrapperspb.String("changed by somebody")
		r := mustCommit(t, s, scheduler.Txn{Refresh: true})
		var got []string
		state := scheduler.Configured
		for _, o := range r.Executed.All() {
			if o.OldState != state {
				t.Errorf("%s %s begins at %s; it was %s", o.Verb, o.Key, o.OldState, state)
			}
			state = o.NewState
			got = append(got, fmt.Sprint(o.Verb, " ", o.Key, " ", o.OldState, " ", o.NewState))
		}
		if state != scheduler.Configured {
			t.Errorf("it ends at %s: %q", state, got)
		}
		t.Log(got)
	})
}
