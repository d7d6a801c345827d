package scheduler_test

import (
	"context"
	"errors"
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

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/wait"
)

// A vague southbound keeps bases, each with a part, and does not show of a base which part was
// declared for it.
type vague struct {
	mu     sync.Mutex
	stands map[string]*wrapperspb.StringValue
	broken map[string]bool
	log    []string // verbs that were called
	reads  []string // what was read back: the descriptor, and the keys where not all were asked for
}

type (
	note      = *wrapperspb.StringValue
	noteFound = scheduler.Found[note, struct{}]
)

func (v *vague) do(verb, key string, change func()) (struct{}, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.log = append(v.log, verb+" "+key)
	if v.broken[key] {
		return struct{}{}, errors.New("broken")
	}
	change()
	return struct{}{}, nil
}

// took are the verbs and the reads since the last time.
func (v *vague) took() (verbs, reads string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	verbs, reads = strings.Join(v.log, ", "), strings.Join(v.reads, ", ")
	v.log, v.reads = nil, nil
	return verbs, reads
}

// found yields what stands under the prefix, a base without what it derives.
func (v *vague) found(prefix string, some []string) iter.Seq2[noteFound, error] {
	return func(yield func(noteFound, error) bool) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.reads = append(v.reads, strings.TrimSpace(prefix+" "+strings.Join(some, " ")))
		for _, key := range slices.Sorted(maps.Keys(v.stands)) {
			if strings.HasPrefix(key, prefix) && !yield(noteFound{Key: key, Value: wrapperspb.String("")}, nil) {
				return
			}
		}
	}
}

func (v *vague) descriptor(prefix string) scheduler.Descriptor[note, struct{}] {
	return scheduler.Descriptor[note, struct{}]{
		Name: strings.Trim(prefix, "/"), Prefix: prefix, Connection: "vague",
		Equivalent: func(string, note, note) bool { return true },
		Create: func(_ context.Context, key string, m note) (struct{}, error) {
			return v.do("create", key, func() { v.stands[key] = m })
		},
		Delete: func(_ context.Context, key string, _ note, _ struct{}) error {
			_, err := v.do("delete", key, func() { delete(v.stands, key) })
			return err
		},
	}
}

// begin registers bases, parts and users of parts. The options are "parts" (they are read back by
// themselves) and "some" (single bases can be read back).
func (v *vague) begin(t *testing.T, options ...string) (*scheduler.Scheduler, func()) {
	s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
	base, part, user := v.descriptor("base/"), v.descriptor("part/"), v.descriptor("user/")
	base.Derived = func(key string, m note) []scheduler.KeyValue {
		if m.GetValue() == "" {
			return nil
		}
		return []scheduler.KeyValue{{Key: "part/" + m.GetValue(), Value: wrapperspb.String("")}, {Key: "property/" + m.GetValue(), Value: &emptypb.Empty{}}}
	}
	base.Retrieve = func(context.Context, []scheduler.Desired[note]) iter.Seq2[noteFound, error] {
		return v.found("base/", nil)
	}
	if slices.Contains(options, "some") {
		base.RetrieveSome = func(_ context.Context, keys []string, _ []scheduler.Desired[note]) iter.Seq2[noteFound, error] {
			return v.found("base/", keys)
		}
	}
	if slices.Contains(options, "parts") {
		part.Retrieve = func(context.Context, []scheduler.Desired[note]) iter.Seq2[noteFound, error] {
			return v.found("part/", nil)
		}
	}
	user.Dependencies = func(_ string, m note) []scheduler.Dependency {
		return []scheduler.Dependency{{Label: "part", Key: "part/" + m.GetValue()}, {Label: "property", Key: "property/" + m.GetValue()}}
	}
	for _, d := range []scheduler.Descriptor[note, struct{}]{base, part, user} {
		_, err := scheduler.Register(s, d)
		must(t, err)
	}
	return s, begin(t, s)
}

func newVague() *vague {
	return &vague{stands: map[string]*wrapperspb.StringValue{}, broken: map[string]bool{}}
}

func (v *vague) want(t *testing.T, s *scheduler.Scheduler, keysAndTexts ...string) {
	t.Helper()
	var txn scheduler.Txn
	for i := 0; i < len(keysAndTexts); i += 2 {
		value, err := s.Value(keysAndTexts[i], wrapperspb.String(keysAndTexts[i+1]))
		must(t, err)
		txn.Changes = append(txn.Changes, value.Change())
	}
	_, _ = s.Commit(t.Context(), txn) // what fails is in the log
}

// A value that fails again and again leaves its neighbours, their parts and what depends on those
// alone.
func TestNeighboursOfAFailure(t *testing.T) {
	for _, options := range [][]string{nil, {"parts"}, {"some"}, {"parts", "some"}} {
		t.Run(fmt.Sprint(options), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVague()
				s, stop := v.begin(t, options...)
				defer stop()
				v.want(t, s, "base/a", "a", "user/a", "a")
				v.broken["base/bad"] = true
				v.want(t, s, "base/bad", "bad")
				v.took()
				<-time.After(10 * time.Second)
				verbs, reads := v.took()
				if attempts := strings.Count(verbs, "create base/bad"); attempts < 3 || strings.Count(verbs, ",") != attempts-1 {
					t.Errorf("while one fails: %s", verbs)
				}
				if want := slices.Contains(options, "some"); want != strings.Contains(reads, "base/ base/bad") || reads == "" {
					t.Errorf("it reads %s", reads)
				}
			})
		})
	}
}

// A base whose own verb fails is read back with its parts; those that are read back by themselves
// stay, and so does what depends on them.
func TestPartsOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVague()
		s, stop := v.begin(t, "parts", "some")
		defer stop()
		v.want(t, s, "base/a", "a", "user/a", "a")
		v.broken["part/more"] = true
		v.want(t, s, "base/b", "more")
		v.took()
		<-time.After(2 * time.Second)
		if verbs, reads := v.took(); verbs != "create part/more" || reads != "part/" {
			t.Errorf("it does %s and reads %s", verbs, reads)
		}
		must(t, commitRefresh(t, s))
		if verbs, _ := v.took(); strings.Contains(verbs, "delete") {
			t.Errorf("a resync does %s", verbs)
		}

		v.mu.Lock()
		delete(v.stands, "part/a")
		v.mu.Unlock()
		s.Refresh("base") // which reads the parts too
		synctest.Wait()
		if verbs, reads := v.took(); verbs != "delete user/a, create part/a, create user/a" || reads != "base/, part/" {
			t.Errorf("it does %s and reads %s", verbs, reads)
		}
	})
}

func commitRefresh(t *testing.T, s *scheduler.Scheduler) error {
	_, err := s.Commit(t.Context(), scheduler.Txn{Refresh: true})
	if _, ok := errors.AsType[*scheduler.TxnError](err); ok {
		return nil
	}
	return err
}

// A value that is found standing while it waits for the connection is ours: it is remembered, and
// the history says that it stands, but no verb is called.
func TestFoundWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, memory := newFakeNet(), notebook{}
		net.unknown = true
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: memory})
		group, err := s.Connection("net")
		must(t, err)
		net.descriptors(t, s)
		defer begin(t, s)()
		v, err := s.Value(key("if1"), message("if1", nil))
		must(t, err)
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
		net.set([]string{"stands", "if1"})
		group.Ready()
		synctest.Wait()
		h := s.History()
		var ops []string
		for _, op := range h[len(h)-1].Executed.All() {
			ops = append(ops, fmt.Sprint(op.Verb, " ", short(op.Key), " ", op.OldState, " ", op.NewState, " ", op.Noop))
		}
		if want := []string{"UPDATE if1 PENDING CONFIGURED true", "UPDATE linux/interface/state/if1/UP NONEXISTENT CONFIGURED true"}; !slices.Equal(ops, want) {
			t.Errorf("recorded %q, want %q", ops, want)
		}
		must(t, wait.For(t.Context(), s, key("if1")))
		mustCommit(t, s, scheduler.Txn{}) // what went before has been remembered
		if _, remembered := memory[key("if1")]; !remembered || net.log() != "" {
			t.Errorf("remembered: %v; verbs: %q", remembered, net.log())
		}
	})
}
