package orchestrator_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

const prefix = "config/linux/interfaces/v2/interface/"

// input is a layer's source that a test feeds.
type input struct {
	ready chan struct{}
	mu    sync.Mutex
	queue []kvdbsync.Change

	relists atomic.Int32
	health  atomic.Int32 // a kvdbsync.State
	trying  atomic.Bool  // nothing has failed yet

	withheld atomic.Bool // its content may not be applied
}

var errTaken = fmt.Errorf("%w: that of the test", kvdbsync.ErrTaken)

func (in *input) Withheld() error {
	if in.withheld.Load() {
		return errTaken
	}
	return nil
}

// allow ends that the content is withheld.
func (in *input) allow() {
	in.withheld.Store(false)
	in.wake()
}

// wake has the orchestrator ask for what there is.
func (in *input) wake() {
	select {
	case in.ready <- struct{}{}:
	default:
	}
}

func (in *input) Health() kvdbsync.Health {
	h := kvdbsync.Health{State: kvdbsync.State(in.health.Load())}
	if h.State == kvdbsync.Connecting && !in.trying.Load() {
		h.Err = errAway
	}
	if h.State == kvdbsync.Withheld && in.withheld.Load() { // else it is not known whether another has the label
		h.Err = errTaken
	}
	return h
}

var errAway = errors.New("connection refused")

func (in *input) Relist() { in.relists.Add(1) }

func newInput() *input { return &input{ready: make(chan struct{}, 1)} }

func (in *input) Ready() <-chan struct{} { return in.ready }

func (in *input) Take() (kvdbsync.Change, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.queue) == 0 || in.withheld.Load() {
		return kvdbsync.Change{}, false
	}
	c := in.queue[0]
	in.queue = in.queue[1:]
	if len(in.queue) > 0 {
		in.ready <- struct{}{}
	}
	return c, true
}

// give hands on a change. A listing in it begins now, unless it says when.
func (in *input) give(c kvdbsync.Change) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if c.Resynced && c.Listing.Began.IsZero() {
		c.Listing.Began = time.Now()
	}
	if in.queue = append(in.queue, c); len(in.queue) == 1 {
		in.ready <- struct{}{}
	}
}

// testLayers: three at most; "high" is above the layer grpc of the rig, "short" ends with it.
var testLayers = orchestrator.LayerOptions{
	Max: 3, Reserved: []string{"redis"},
	Priority: func(name string) int {
		if name == "high" {
			return 3
		}
		return 1
	},
	Volatile: func(name string) bool { return name == "short" },
}

var errFull = errors.New("no space left")

// rig is an orchestrator over a scheduler whose southbound is a map.
type rig struct {
	inputs map[string]*input
	local  *orchestrator.Local // of the layer grpc
	sched  *scheduler.Scheduler
	orch   *orchestrator.Orchestrator
	log    bytes.Buffer // written only while the test waits
	mu     sync.Mutex
	stands map[string]string // interface name -> MTU
	verbs  int               // calls that changed something
	called func()            // nil, or called after each of them
	fails  map[string]bool   // interfaces whose Create fails
	most   uint32            // MTU that Validate accepts; 0: 9216
	done   int               // calls of Options.Complete
	told   chan<- string     // nil, or is sent each of them: "if1=1500", "if1="
}

// bubble runs f with a rig of the given layers, in virtual time; grpc is a Local. After
// synctest.Wait all that was given has been followed.
func bubble(t *testing.T, layers map[string]int, standing string, f func(*testing.T, *rig)) {
	life(t, layers, standing, nil, f)
}

// life is bubble with a memory of earlier lives.
func life(t *testing.T, layers map[string]int, standing string, memory orchestrator.Memory, f func(*testing.T, *rig)) {
	t.Helper()
	lifeOf(t, 0, layers, standing, memory, f)
}

// lifeOf is the life of an agent that accepts an MTU of at most mostMTU; 0: the default.
func lifeOf(t *testing.T, mostMTU uint32, layers map[string]int, standing string, memory orchestrator.Memory, f func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := &rig{inputs: map[string]*input{}, stands: map[string]string{}, most: mostMTU}
		for e := range strings.FieldsSeq(standing) {
			name, mtu, _ := strings.Cut(e, "=")
			r.stands[name] = mtu
		}
		log := slog.New(slog.NewTextHandler(&r.log, nil))
		r.sched = scheduler.New(scheduler.Options{Log: log})
		if _, err := scheduler.Register(r.sched, r.descriptor()); err != nil {
			t.Fatal(err)
		}
		opts := orchestrator.Options{Log: log, Memory: memory, Complete: func() { r.done++ }, Layers: testLayers}
		for name, priority := range layers {
			l := orchestrator.Source{Name: name, Priority: priority}
			if name == "grpc" {
				r.local = orchestrator.NewLocal()
				l.Local = r.local
			} else {
				r.inputs[name] = newInput()
				l.Feed = r.inputs[name]
			}
			opts.Sources = append(opts.Sources, l)
		}
		var running errgroup.Group
		running.Go(func() error { return r.sched.Run(ctx) })
		r.orch = orchestrator.New(r.sched, opts)
		running.Go(func() error { return r.orch.Run(ctx) })
		f(t, r)
		cancel()
		if err := running.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// give hands a change to a layer and waits until it has been followed.
func (r *rig) give(layer string, c kvdbsync.Change) {
	r.inputs[layer].give(c)
	synctest.Wait()
}

func (r *rig) set(name, mtu string) {
	if r.told != nil {
		r.told <- name + "=" + mtu
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verbs++
	if mtu == "" {
		delete(r.stands, name)
	} else {
		r.stands[name] = mtu
	}
	if r.called != nil {
		r.called()
	}
}

func (r *rig) descriptor() scheduler.Descriptor[*interfaces.Interface, struct{}] {
	type none = struct{}
	type found = scheduler.Found[*interfaces.Interface, none]
	return scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Validate: func(_ string, v *interfaces.Interface) error {
			if most := cmp.Or(r.most, 9216); v.Mtu > most {
				return &models.FieldError{Field: "mtu", Value: v.Mtu, Expected: fmt.Sprint("at most ", most)}
			}
			return nil
		},
		Create: func(_ context.Context, _ string, v *interfaces.Interface) (none, error) {
			if r.fails[v.Name] {
				return none{}, errFull
			}
			r.set(v.Name, fmt.Sprint(v.Mtu))
			return none{}, nil
		},
		Update: func(_ context.Context, _ string, _, v *interfaces.Interface, _ none) (none, error) {
			r.set(v.Name, fmt.Sprint(v.Mtu))
			return none{}, nil
		},
		Delete: func(_ context.Context, _ string, v *interfaces.Interface, _ none) error {
			r.set(v.Name, "")
			return nil
		},
		Retrieve: func(context.Context, []scheduler.Desired[*interfaces.Interface]) iter.Seq2[found, error] {
			return func(yield func(found, error) bool) {
				for name, mtu := range maps.Clone(r.stands) {
					n, err := strconv.ParseUint(mtu, 10, 32)
					if !yield(found{Value: &interfaces.Interface{Name: name, Mtu: uint32(n)}}, err) {
						return
					}
				}
			}
		},
	}
}

// standing is what the southbound has: "if1=1500 if2=9000".
func (r *rig) standing() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r.stands)) {
		out = append(out, name+"="+r.stands[name])
	}
	return strings.Join(out, " ")
}

// events reads "if1=1500 if2= if3=?": a put, a delete, and a key that is absent. A value
// that is no number is put as it is.
func events(text string) (out []kvdbsync.Event) {
	for f := range strings.FieldsSeq(text) {
		name, mtu, _ := strings.Cut(f, "=")
		out = append(out, event(name, mtu))
	}
	return out
}

func event(name, mtu string) kvdbsync.Event {
	e := kvdbsync.Event{Key: prefix + name}
	switch {
	case mtu == "":
	case mtu == "?":
		e.Absent = true
	case strings.Trim(mtu, "0123456789") != "":
		e.Value = []byte(mtu)
	default:
		e.Value = fmt.Appendf(nil, `{"name":%q,"mtu":%s}`, name, mtu)
	}
	return e
}
