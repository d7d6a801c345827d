package scheduler_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

const (
	configured = scheduler.Configured
	retrying   = scheduler.Retrying
)

// A tar is a southbound in memory, some calls of which do not return before they are released.
// They know nothing of contexts.
type tar struct {
	mu     sync.Mutex
	stands map[string]string
	hangs  map[string]chan error // by call: released by a result, for all that wait
	calls  []string
	now    map[string]int // verbs that run, by key
	twice  []string       // keys with two verbs at once
	reads  bool           // there is Retrieve
	slow   time.Duration  // how long each verb takes
	half   bool           // calls that return an error have done their work
	vain   string         // this call has no effect that lasts

	refuses string // keys with this prefix are not created; empty: all are
}

func newTar() *tar {
	return &tar{stands: map[string]string{}, hangs: map[string]chan error{}, now: map[string]int{}, reads: true}
}

// hang has a call, such as "create thing/a", wait until it is released.
func (b *tar) hang(call string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hangs[call] = make(chan error)
}

// release lets the calls that wait return.
func (b *tar) release(call string, err error) {
	b.mu.Lock()
	c := b.hangs[call]
	delete(b.hangs, call)
	b.mu.Unlock()
	for {
		select {
		case c <- err:
			synctest.Wait()
		default:
			synctest.Wait()
			return
		}
	}
}

func (b *tar) call(verb, key string, do func()) error {
	call := verb + " " + key
	b.mu.Lock()
	b.calls = append(b.calls, call)
	if b.now[key]++; b.now[key] > 1 && verb != "retrieve" {
		b.twice = append(b.twice, key)
	}
	c := b.hangs[call]
	b.mu.Unlock()
	var err error
	if c != nil {
		err = <-c
	}
	if b.slow > 0 && verb != "retrieve" {
		<-time.After(b.slow)
	}
	if b.refuses != "" && verb == "create" && strings.HasPrefix(key, b.refuses) {
		err = errRefusedByTar
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now[key]--
	if (err == nil || b.half) && call != b.vain {
		do()
	}
	return err
}

// sorted sorts a list of calls that took returned.
func sorted(calls string) string {
	return strings.Join(slices.Sorted(slices.Values(strings.Split(calls, ", "))), ", ")
}

func (b *tar) took() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := strings.Join(b.calls, ", ")
	b.calls = nil
	return out
}

// descriptor is that of things below prefix, which need the thing that their text names after ">", or any below "folder/*".
func (b *tar) descriptor(prefix string) scheduler.Descriptor[note, struct{}] {
	d := scheduler.Descriptor[note, struct{}]{
		Name: strings.Trim(prefix, "/"), Prefix: prefix, Connection: "tar",
		Dependencies: func(_ string, m note) []scheduler.Dependency {
			_, on, ok := strings.Cut(m.GetValue(), ">")
			folder, any := strings.CutSuffix(on, "*")
			switch {
			case any:
				return []scheduler.Dependency{{Label: "needs", Prefixes: []string{folder}}}
			case ok:
				return []scheduler.Dependency{{Label: "needs", Key: on}}
			}
			return nil
		},
		Claims: func(_ string, m note) []scheduler.Claim {
			if _, name, ok := strings.Cut(m.GetValue(), "="); ok {
				return []scheduler.Claim{{Resource: "name/" + name, Field: "name", Value: name, Want: "another name"}}
			}
			return nil
		},
		Create: func(_ context.Context, key string, m note) (struct{}, error) {
			return struct{}{}, b.call("create", key, func() { b.stands[key] = m.GetValue() })
		},
		Update: func(_ context.Context, key string, _, m note, _ struct{}) (struct{}, error) {
			return struct{}{}, b.call("update", key, func() { b.stands[key] = m.GetValue() })
		},
		Delete: func(_ context.Context, key string, _ note, _ struct{}) error {
			return b.call("delete", key, func() { delete(b.stands, key) })
		},
	}
	if b.reads {
		d.Retrieve = func(context.Context, []scheduler.Desired[note]) iter.Seq2[noteFound, error] {
			return func(yield func(noteFound, error) bool) {
				if err := b.call("retrieve", prefix, func() {}); err != nil {
					yield(noteFound{}, err)
					return
				}
				b.mu.Lock()
				stands := maps.Clone(b.stands)
				b.mu.Unlock()
				for _, key := range slices.Sorted(maps.Keys(stands)) {
					if strings.HasPrefix(key, prefix) && !yield(noteFound{Key: key, Value: wrapperspb.String(stands[key])}, nil) {
						return
					}
				}
			}
		}
	}
	return d
}

func (b *tar) begin(t *testing.T, o scheduler.Options) (*scheduler.Scheduler, func()) {
	o.Log = slog.New(slog.DiscardHandler)
	s := scheduler.New(o)
	for _, prefix := range []string{"thing/", "other/"} {
		_, err := scheduler.Register(s, b.descriptor(prefix))
		must(t, err)
	}
	stop := begin(t, s)
	return s, func() {
		stop()
		for _, call := range slices.Sorted(maps.Keys(b.hangs)) {
			b.release(call, nil)
		}
		if len(b.twice) > 0 {
			t.Errorf("two verbs at once of %q", b.twice)
		}
	}
}

// declare commits keys and their texts; empty: nothing is wanted.
func declare(t *testing.T, s *scheduler.Scheduler, keysAndTexts ...string) error {
	t.Helper()
	var txn scheduler.Txn
	for i := 0; i < len(keysAndTexts); i += 2 {
		if keysAndTexts[i+1] == "" {
			txn.Changes = append(txn.Changes, scheduler.Unwant(keysAndTexts[i]))
			continue
		}
		v, err := s.Value(keysAndTexts[i], wrapperspb.String(keysAndTexts[i+1]))
		must(t, err)
		txn.Changes = append(txn.Changes, v.Change())
	}
	_, err := s.Commit(t.Context(), txn)
	return err
}

// states are those of all keys, with their errors.
func states(s *scheduler.Scheduler) string {
	var out []string
	for _, st := range s.Statuses("") {
		line := fmt.Sprintf("%s %s", st.Key, st.State)
		if st.Err != nil {
			line += " (" + st.Err.Error() + ")"
		}
		if st.Actual != nil && st.State == configured {
			line += " " + st.Actual.(*wrapperspb.StringValue).GetValue()
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is\n%s\nwanted\n%s", what, got, want)
	}
}
