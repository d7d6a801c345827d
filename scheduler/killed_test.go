package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// A mortal is a southbound and a memory that outlive the scheduler. The southbound shows
// interfaces, but not whose they are, and does not show neighbours.
type mortal struct {
	mu     sync.Mutex // guards what follows, as one
	stands map[string]string
	memory notebook
	calls  int
	killAt int     // the call of a verb at which the process is killed; 0: none
	after  bool    // killed after the verb has done its work, and before
	failAt int     // the call of a verb that fails
	killed *mortal // what a kill has left
}

func (m *mortal) Load() iter.Seq2[string, []byte] { return m.memory.Load() }

func (m *mortal) Save(changes iter.Seq2[string, []byte]) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory.Save(changes)
}

// do is every verb: an empty text deletes.
func (m *mortal) do(key, text string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	kill := func() { m.killed = &mortal{stands: maps.Clone(m.stands), memory: maps.Clone(m.memory)} }
	if m.calls == m.killAt && !m.after {
		kill()
	}
	if m.calls == m.failAt {
		return errors.New("broken")
	}
	if m.stands[key] = text; text == "" {
		delete(m.stands, key)
	}
	if m.calls == m.killAt && m.after {
		kill()
	}
	return nil
}

func mtuOf(v *interfaces.Interface) string { return fmt.Sprint(v.GetMtu()) }

// life has a scheduler apply intents, one after the other, and returns what is left: by
// a kill, or in the end.
func (m *mortal) life(t *testing.T, intents ...map[string]string) *mortal {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: m})
		m.register(t, s)
		defer begin(t, s)()
		for i, intent := range intents {
			txn := scheduler.Txn{Refresh: i == 0, Replace: true}
			for key, text := range intent {
				v, err := s.Value(key, mortalValue(key, text))
				must(t, err)
				txn.Changes = append(txn.Changes, v.Change())
			}
			_, _ = s.Commit(t.Context(), txn) // what fails is tried again, in the next life at the latest
		}
	})
	if m.killed != nil {
		return m.killed
	}
	return &mortal{stands: m.stands, memory: m.memory}
}

func mortalValue(key, text string) proto.Message {
	if name, ok := strings.CutPrefix(key, models.For[*interfaces.Interface]().Prefix()); ok {
		var mtu uint32
		_, _ = fmt.Sscan(text, &mtu) // the test writes numbers
		return &interfaces.Interface{Name: name, Mtu: mtu}
	}
	_, ip, _ := strings.Cut(strings.TrimPrefix(key, models.For[*l3.ARPEntry]().Prefix()), "/")
	return &l3.ARPEntry{Interface: "eth0", IpAddress: ip, HwAddress: text}
}

func (m *mortal) register(t *testing.T, s *scheduler.Scheduler) {
	type none = struct{}
	type found = scheduler.Found[*interfaces.Interface, none]
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Create: func(_ context.Context, key string, v *interfaces.Interface) (none, error) {
			return none{}, m.do(key, mtuOf(v))
		},
		Update: func(_ context.Context, key string, _, v *interfaces.Interface, _ none) (none, error) {
			return none{}, m.do(key, mtuOf(v))
		},
		Delete: func(_ context.Context, key string, _ *interfaces.Interface, _ none) error { return m.do(key, "") },
		Retrieve: func(context.Context, []scheduler.Desired[*interfaces.Interface]) iter.Seq2[found, error] {
			return func(yield func(found, error) bool) {
				m.mu.Lock()
				stands := maps.Clone(m.stands)
				m.mu.Unlock()
				for key, text := range stands {
					if v, ok := mortalValue(key, text).(*interfaces.Interface); ok && !yield(found{Value: v, OwnerUnknown: true}, nil) {
						return
					}
				}
			}
		},
	})
	must(t, err)
	_, err = scheduler.Register(s, scheduler.Descriptor[*l3.ARPEntry, none]{
		Name: "arp", Model: models.For[*l3.ARPEntry](),
		Create: func(_ context.Context, key string, v *l3.ARPEntry) (none, error) {
			return none{}, m.do(key, v.GetHwAddress())
		},
		Update: func(_ context.Context, key string, _, v *l3.ARPEntry, _ none) (none, error) {
			return none{}, m.do(key, v.GetHwAddress())
		},
		Delete: func(_ context.Context, key string, _ *l3.ARPEntry, _ none) error { return m.do(key, "") },
	})
	must(t, err)
}

// anyIntent is some interfaces and neighbours.
func anyIntent(t *rapid.T) map[string]string {
	out := map[string]string{}
	for i := range 3 {
		if mtu := rapid.IntRange(0, 2).Draw(t, "mtu"); mtu > 0 {
			out[fmt.Sprintf("%sif%d", models.For[*interfaces.Interface]().Prefix(), i)] = fmt.Sprint(1400 + mtu)
		}
		if mac := rapid.IntRange(0, 2).Draw(t, "mac"); mac > 0 {
			out[fmt.Sprintf("%seth0/10.0.0.%d", models.For[*l3.ARPEntry]().Prefix(), i)] = fmt.Sprintf("02:00:00:00:00:0%d", mac)
		}
	}
	return out
}

// TestKilledAnywhere kills the process at any verb, before or after that has done its work.
// In the next life exactly what is declared then stands: nothing is left over, nothing is
// missing, nothing is as it was before, and what somebody else made is not touched.
func TestKilledAnywhere(t *testing.T) {
	foreign := models.For[*interfaces.Interface]().Prefix() + "foreign"
	draw.Check(t, func(rt *rapid.T) {
		m := &mortal{stands: map[string]string{foreign: "1"}, memory: notebook{}}
		for range rapid.IntRange(1, 3).Draw(rt, "lives") {
			m.killAt = rapid.IntRange(1, 12).Draw(rt, "killAt")
			m.after = rapid.Bool().Draw(rt, "after")
			m.failAt = rapid.IntRange(0, 12).Draw(rt, "failAt")
			m = m.life(t, anyIntent(rt), anyIntent(rt))
		}
		last := anyIntent(rt)
		m = m.life(t, last)
		last[foreign] = "1"
		if !maps.Equal(m.stands, last) {
			rt.Fatalf("there are %v, want %v", m.stands, last)
		}
		if m = m.life(t, nil); len(m.stands) != 1 {
			rt.Fatalf("left over: %v", m.stands)
		}
		if m = m.life(t, nil); len(m.memory) != 0 {
			rt.Fatalf("still remembered: %v", m.memory)
		}
	})
}

// An item that is found as it is declared is ours from then on: the next life removes it
// when it is not declared any more, although the memory was lost in between.
func TestWhatIsAdoptedIsRemembered(t *testing.T) {
	key := models.For[*interfaces.Interface]().Prefix() + "if1"
	m := &mortal{stands: map[string]string{}, memory: notebook{}}
	m = m.life(t, map[string]string{key: "1500"})
	m.memory = notebook{}
	m = m.life(t, map[string]string{key: "1500"})
	if m = m.life(t, nil); len(m.stands) != 0 {
		t.Errorf("left over: %v", m.stands)
	}
}

// shownFirst is a memory that notes whether a value was shown before it was told of it.
type shownFirst struct {
	notebook
	key   string
	sched *scheduler.Scheduler
	shown bool
}

func (f *shownFirst) Save(changes iter.Seq2[string, []byte]) error {
	if st, known := f.sched.Status(f.key); known && st.State.String() == "CONFIGURED" {
		f.shown = true
	}
	return f.notebook.Save(changes)
}

// Whoever sees that an adopted item is CONFIGURED may rely on it: it is remembered already.
func TestWhatIsAdoptedIsRememberedBeforeItIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := models.For[*interfaces.Interface]().Prefix() + "if1"
		m := &mortal{stands: map[string]string{key: "1500"}}
		memory := &shownFirst{notebook: notebook{}, key: key}
		memory.sched = scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: memory})
		m.register(t, memory.sched)
		defer begin(t, memory.sched)()
		v, err := memory.sched.Value(key, mortalValue(key, "1500"))
		must(t, err)
		_, err = memory.sched.Commit(t.Context(), scheduler.Txn{Refresh: true, Replace: true, Changes: []scheduler.Change{v.Change()}})
		must(t, err)
		if m.calls > 0 || memory.notebook[key] == nil || memory.shown {
			t.Errorf("%d verbs, remembered %v, shown before that: %v; want none, true, false", m.calls, memory.notebook[key] != nil, memory.shown)
		}
	})
}
