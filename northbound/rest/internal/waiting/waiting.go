// Package waiting answers a request when values have a state, so that a client need not ask again
// and again.
//
//	waiter := waiting.New(waiting.Options{Scheduler: sched, Incomplete: sources})
//	leave, err := waiter.Enter()
//	defer leave()
//	answer, err := waiter.Wait(ctx, wire.Wait{State: "configured", Keys: keys})
//
// The scheduler tells when something has changed; then the present states are compared. Between
// two comparisons there is a pause, so a flood of changes costs at most ten comparisons a second.
// Only sources report no end of their listing: while one is incomplete, they are asked each second.
//
// A value that was written into a store before the request may be on its way to the agent. So a
// wait begins with a request that the sources list their stores again, and ends when these listings
// are in effect: before that, CONFIGURED may be the state of an older content, and no failure is
// hopeless.
//
// Bounds: at most MaxClients requests wait at the same time, each up to MaxWait. A client that wants
// to wait longer asks again. One of them compares at a time, as that needs a list of all states. Tests run real schedulers in virtual time.
package waiting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/internal/states"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/changes"
)

const (
	// MaxClients is the maximum number of requests that wait.
	MaxClients = 32
	// MaxWait is the longest wait of one request.
	MaxWait = time.Minute
	// defaultWait is the wait of a request that names none.
	defaultWait = 30 * time.Second
	// maxMissing is how many values an answer names.
	maxMissing = 1000
	// pause is the time between two comparisons.
	pause = 100 * time.Millisecond
	// look is the period of asking incomplete sources, and firstLook the time until the first
	// question: most stores are listed within it.
	look      = time.Second
	firstLook = 10 * time.Millisecond
	// again is the period of requests for listings: an earlier one may have failed.
	again = 10 * time.Second
)

var (
	// ErrFull is the error of a request beyond MaxClients.
	ErrFull = fmt.Errorf("%d clients wait already; try again later", MaxClients)
	// ErrRequest is wrapped by the errors of a request that makes no sense.
	ErrRequest = errors.New("wait")
)

// Options configure a Waiter.
type Options struct {
	Scheduler *scheduler.Scheduler
	// Short removes the agent's own prefix from a key.
	Short func(key string) string
	// Incomplete returns the names of sources that have not listed their stores since a time, or
	// whose listing is not in effect: of all, or of those that are connected to their stores.
	// Defaults to none.
	Incomplete func(since time.Time, all bool) []string
	// Relist asks the sources to list their stores again. Defaults to doing nothing.
	Relist func()
	// Ended is closed when the server stops. Defaults to never.
	Ended <-chan struct{}
}

// A Waiter serves waiting requests. Any goroutine may use it.
type Waiter struct {
	Options
	clients   atomic.Int32
	comparing sync.Mutex // held by the one that compares
}

// New returns a Waiter without a client.
func New(o Options) *Waiter {
	if o.Incomplete == nil {
		o.Incomplete = func(time.Time, bool) []string { return nil }
	}
	if o.Relist == nil {
		o.Relist = func() {}
	}
	return &Waiter{Options: o}
}

// Enter counts a client, from before its request is read until leave is called. The error is ErrFull.
func (w *Waiter) Enter() (leave func(), err error) {
	if w.clients.Add(1) > MaxClients {
		w.clients.Add(-1)
		return nil, ErrFull
	}
	return func() { w.clients.Add(-1) }, nil
}

// Wait returns when the values have the state, when that has become hopeless, or when the time is
// over. The error is that of a request that makes no sense, or of ctx.
func (w *Waiter) Wait(ctx context.Context, q wire.Wait) (wire.Waited, error) {
	wanted, err := w.read(q)
	if err != nil {
		return wire.Waited{}, err
	}
	// Before the first comparison, so that no change falls between both.
	changed := changes.Collect(w.Scheduler, 1)
	defer changed.Close()
	end := time.NewTimer(wanted.most)
	defer end.Stop()
	asks := asking{relist: w.Relist}
	for {
		out := w.compare(wanted)
		if out.Done || out.Hopeless {
			return out, nil
		}
		if over, err := w.sleep(ctx, changed, end, asks.next(len(out.Incomplete) > 0)); over || err != nil {
			return w.compare(wanted), err
		}
	}
}

// asking is when incomplete sources are asked next, and when they are to list their stores.
type asking struct {
	relist func()
	look   time.Duration
	listed time.Time // of the last request; zero: none
}

// next returns the time until the next question; 0: no source is incomplete.
func (a *asking) next(incomplete bool) time.Duration {
	if !incomplete {
		return 0
	}
	if a.listed.IsZero() || time.Since(a.listed) >= again {
		a.listed = time.Now()
		a.relist()
	}
	a.look = min(max(2*a.look, firstLook), look)
	return a.look
}

// sleep waits for the next reason to compare: a change, or asks, the time of the next question to
// the sources; 0: there is none. over means that the time has ended.
func (w *Waiter) sleep(ctx context.Context, changed *changes.Collector, end *time.Timer, asks time.Duration) (over bool, err error) {
	var tick <-chan time.Time
	if asks > 0 {
		timer := time.NewTimer(asks)
		defer timer.Stop()
		tick = timer.C
	}
	select {
	case <-changed.Ready():
		changed.Take()
	case <-tick:
	case <-end.C:
		return true, nil
	case <-w.Ended:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
	calm := time.NewTimer(pause)
	defer calm.Stop()
	select {
	case <-calm.C:
		return false, nil
	case <-end.C:
		return true, nil
	case <-w.Ended:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// A wish is a request in the form in which states are compared.
type wish struct {
	state  scheduler.State
	keys   map[string]bool
	models map[string]bool // by name
	all    bool
	values map[string]proto.Message // nil: nothing is to be declared
	most   time.Duration
	since  time.Time // when the wait began; zero: content alone matters, so no source needs to be asked
}

// read checks a request.
func (w *Waiter) read(q wire.Wait) (out wish, err error) {
	out = wish{state: scheduler.Configured, keys: map[string]bool{}, models: map[string]bool{}, all: q.All, values: map[string]proto.Message{}, most: defaultWait}
	if q.State != "" {
		if out.state, err = stateNamed(q.State); err != nil {
			return out, err
		}
	}
	if err := out.readTimes(q); err != nil {
		return out, err
	}
	known := w.Scheduler.Models()
	for _, key := range q.Keys {
		out.keys[w.Short(key)] = true
	}
	for _, name := range q.Models {
		if _, ok := known.ByName(name); !ok {
			return out, fmt.Errorf("%w: %w: %q", ErrRequest, models.ErrNoModel, name)
		}
		out.models[name] = true
	}
	for _, v := range q.Values {
		key := w.Short(v.Key)
		out.values[key] = nil
		if len(v.Value) == 0 || string(v.Value) == "null" {
			continue
		}
		if out.values[key], err = known.Decode(key, v.Value); err != nil {
			return out, fmt.Errorf("%w: %s: %w", ErrRequest, key, err)
		}
	}
	if len(out.keys)+len(out.models)+len(out.values) == 0 && !out.all && q.Document == "" { // a document may have no values
		return out, fmt.Errorf("%w: expected Keys, Models, Values, Document or All", ErrRequest)
	}
	return out, nil
}

// readTimes checks when a wait began, and how long it may take.
func (q *wish) readTimes(from wire.Wait) error {
	if ms := from.Milliseconds; ms < 0 || ms > MaxWait.Milliseconds() {
		return fmt.Errorf("%w: Milliseconds is %d; expected 1 to %d", ErrRequest, ms, MaxWait.Milliseconds())
	} else if ms > 0 {
		q.most = time.Duration(ms) * time.Millisecond
	}
	if len(from.Keys)+len(from.Models) > 0 || from.All {
		if q.since = from.Since; q.since.IsZero() {
			q.since = time.Now()
		}
	}
	return nil
}

// stateNamed returns a state by its name.
func stateNamed(name string) (scheduler.State, error) {
	var names []string
	for st := scheduler.Nonexistent + 1; st <= scheduler.Retrying; st++ {
		if strings.EqualFold(st.String(), name) {
			return st, nil
		}
		names = append(names, strings.ToLower(st.String()))
	}
	return 0, fmt.Errorf("%w: State is %q; expected one of %s", ErrRequest, name, strings.Join(names, ", "))
}

// compare tells which values lack the state now.
func (w *Waiter) compare(q wish) (out wire.Waited) {
	w.comparing.Lock()
	defer w.comparing.Unlock()
	all := w.Scheduler.Statuses("")
	bases := map[string]bool{} // the values that the wait is about, for those derived from them
	for _, st := range all {
		if st.Base == "" && q.selects(w.Scheduler.Models(), st) {
			bases[st.Key] = true
			out.Count++
			q.compare(st, &out)
		}
	}
	if q.state == scheduler.Configured {
		q.judgeDerived(all, bases, &out)
	}
	for key := range q.keys {
		if !bases[key] {
			q.judgeAbsent(key, &out)
		}
	}
	for key, v := range q.values {
		if !bases[key] && !q.keys[key] {
			q.judgeNoContent(key, v, &out)
		}
	}
	if !q.since.IsZero() {
		out.Incomplete, out.Since = w.Incomplete(q.since, q.all || len(q.models) > 0), q.since
		out.Hopeless = out.Hopeless && len(out.Incomplete) == 0
	}
	slices.SortFunc(out.Missing, func(a, b wire.ValueStatus) int { return strings.Compare(a.Key, b.Key) })
	out.Done = out.MissingCount == 0 && len(out.Incomplete) == 0
	return out
}

// baseOf returns the key of the declared value that st is derived from, perhaps indirectly.
func baseOf(all []*scheduler.Status, st *scheduler.Status) string {
	base := st.Base
	for {
		i, found := slices.BinarySearchFunc(all, base, func(one *scheduler.Status, key string) int { return strings.Compare(one.Key, key) })
		if !found || all[i].Base == "" {
			return base
		}
		base = all[i].Base
	}
}

// selects reports whether the wait is about a value. Values that nobody declares, such as those of
// the system itself, are not part of a model's values or of all.
func (q *wish) selects(known *models.Registry, st *scheduler.Status) bool {
	if _, named := q.values[st.Key]; named || q.keys[st.Key] {
		return true
	}
	m, _, ok := known.ByKey(st.Key)
	if !ok || !q.all && !q.models[m.Name()] {
		return false
	}
	if q.state == scheduler.Configured { // an actual value that nobody declares never will be
		return st.Desired != nil || st.State == scheduler.Invalid || st.State == scheduler.Unimplemented
	}
	return st.State != scheduler.Obtained || st.Desired != nil
}

// compare compares one value that exists.
func (q *wish) compare(st *scheduler.Status, out *wire.Waited) {
	v, named := q.values[st.Key]
	switch {
	case named && v == nil:
		if st.Desired != nil {
			q.miss(st, out)
		}
	case named && !proto.Equal(v, st.Desired): // its state is still that of another content
		add(st, out, "its content is another one")
	case !q.reached(st):
		q.miss(st, out)
	}
}

// judgeAbsent compares a key without a value.
func (q *wish) judgeAbsent(key string, out *wire.Waited) {
	out.Count++
	if q.state != scheduler.Removed {
		q.miss(&scheduler.Status{Key: key}, out)
	}
}

// judgeDerived compares the values derived from bases.
func (q *wish) judgeDerived(all []*scheduler.Status, bases map[string]bool, out *wire.Waited) {
	for _, st := range all {
		if st.Base != "" && bases[baseOf(all, st)] && !q.reached(st) {
			q.miss(st, out)
		}
	}
}

// judgeNoContent compares a key without a value, of which the content matters.
func (q *wish) judgeNoContent(key string, wanted proto.Message, out *wire.Waited) {
	out.Count++
	if wanted != nil {
		q.miss(&scheduler.Status{Key: key}, out)
	}
}

// reached reports whether a value that exists has the state.
func (q *wish) reached(st *scheduler.Status) bool {
	return st.State == q.state || q.state == scheduler.Configured && st.State == scheduler.Obtained
}

// miss adds a value that lacks the state. A value that is to be configured and failed does not change
// by itself.
func (q *wish) miss(st *scheduler.Status, out *wire.Waited) {
	add(st, out)
	if q.state == scheduler.Configured && slices.Contains([]scheduler.State{scheduler.Invalid, scheduler.Failed, scheduler.Unimplemented}, st.State) {
		out.Hopeless = true
	}
}

// add counts a value that is missing, and names the first ones.
func add(st *scheduler.Status, out *wire.Waited, details ...string) {
	if out.MissingCount++; out.MissingCount > maxMissing {
		return
	}
	missing := states.One(st)
	missing.Details = append(details, missing.Details...)
	out.Missing = append(out.Missing, missing)
}
