// Package trial declares values for a limited time: unless somebody confirms them, they are taken
// back.
//
//	trials, err := trial.New(trial.Options{Layers: orch, Memory: store})
//	orch := orchestrator.New(sched, orchestrator.Options{First: trials.Due(), ...})
//	_, err = trials.Try(ctx, request, time.Minute)
//	err = trials.Confirm("agentctl")
//
// A trial changes its layer as the same request without a trial would: by priority, and with
// removals. So confirming it changes nothing; it only drops what would take the trial back, which
// are the earlier values of the keys. A layer of its own above all others would show another
// network during the trial than after it. While a layer has a trial, it takes no other change.
//
//	state      | begins when                     | after a restart
//	beginning  | the earlier values are saved    | is taken back at once
//	running    | all values have been applied    | goes on, or is taken back if its time is over
//	ending     | its time is over, or Cancel     | is taken back at once
//	overdue    | it could not be taken back      | is taken back at once
//	           | or that could not be saved      |
//	stuck      | an earlier value is refused     | is taken back at once
//	undeleted  | it has ended, but cannot be     | is taken back once more
//	           | deleted from the Memory         |
//
// Run tries again to end an overdue trial and to delete an undeleted one. A change of the layer does
// the latter too, and is refused otherwise, because the next start would undo it. A stuck trial
// needs a decision: Cancel tries again, and Confirm keeps its values.
//
// A trial is all or nothing: if an operation fails, everything is undone, and there is no trial.
// The earlier values are saved before anything is applied, so neither the end of the agent, also
// by a kill or a loss of power, nor the death of the client can make a trial permanent. What is due at a start is
// taken back before anything is applied. The time is that of the clock; if the clock was set back
// meanwhile, a trial gets at most its whole time again.
//
// mu guards the table of trials. Run ends them; other methods may be called from any goroutine.
// Tests run a real orchestrator in virtual time, with kills in each state.
package trial

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// Bounds of the time of a trial.
const (
	Shortest = time.Second
	Longest  = 24 * time.Hour
)

// again is the pause after a trial could not be taken back or deleted.
const again = time.Second

var (
	// ErrTime is the error of a trial with a time that is too short or too long.
	ErrTime = fmt.Errorf("the time of a trial is %v to %v", Shortest, Longest)
	// ErrOnTrial is the error of a change of a layer that has a trial.
	ErrOnTrial = errors.New("the data source has a trial: confirm or cancel it first")
	// ErrBusy is the error of a trial in a layer that is being changed.
	ErrBusy = errors.New("the data source is being changed: try again")
	// ErrNoTrial is the error of Confirm and Cancel for a layer without a running trial.
	ErrNoTrial = errors.New("the data source has no running trial")
	// ErrNotDeleted is the error of a change of a layer whose trial has ended, but cannot be deleted.
	ErrNotDeleted = errors.New("the ended trial cannot be deleted; the next start would take it back")
	// ErrNotSaved is the error of a trial that a restart would not know.
	ErrNotSaved = errors.New("the trial is refused because it cannot be saved for the next start")
)

// Layers are the layers of an orchestrator. *orchestrator.Orchestrator implements it.
type Layers interface {
	Declare(ctx context.Context, q orchestrator.Request) (*scheduler.Record, error)
	Content(ctx context.Context, source string) ([]orchestrator.Held, error)
}

// A Memory keeps trials across restarts; *statestore.Store is one. Its keys are the names of layers.
type Memory interface {
	Load() iter.Seq2[string, []byte]
	// Record saves non-nil values and deletes the others, or fails and changes nothing.
	Record(changes iter.Seq2[string, []byte]) error
	// Sync returns when a loss of power does not lose what was recorded.
	Sync() error
}

// Options configure Trials.
type Options struct {
	// Memory defaults to none: trials end with the process, as layers without a memory do.
	Memory Memory
	// SyncLayers is Memory.Sync for the content of layers. Defaults to doing nothing.
	SyncLayers func() error
	// Unable is the reason why trials would be lost although layers are kept; nil: they are not.
	// Then all trials are refused.
	Unable error
	// Volatile reports that a layer ends with the process. Defaults to keeping each.
	Volatile func(layer string) bool
	Log      *slog.Logger // Defaults to slog.Default
}

// A Trial is a change that is taken back at its end.
type Trial struct {
	Layer    string
	Begun    time.Time
	Deadline time.Time // zero: its values are still being applied
	Keys     []string  // that it has changed, sorted
}

// Trials are the trials of an agent.
type Trials struct {
	Options
	layers Layers // set by Serve

	changed wake.Signal // the next end may be another one

	mu    sync.Mutex
	open  map[string]*running // by layer; with those in first until they are taken back
	busy  map[string]int      // changes in progress without a trial, by layer
	first []*running          // those that were due at the start; read by Due and Run only
}

// A phase is the state of a trial; the package documentation has a table.
type phase uint8

const (
	beginning phase = iota
	applied         // running
	ending
	overdue
	stuck
	undeleted
)

// running is a trial.
type running struct {
	saved
	phase phase
	end   time.Time // with the monotonic clock; zero: it does not run
}

// saved is the part of a trial that the Memory keeps.
type saved struct {
	Layer    string        `json:"layer"`
	Begun    time.Time     `json:"begun"`
	Time     time.Duration `json:"time"`     // in ns
	Deadline time.Time     `json:"deadline"` // zero: not all values have been applied
	Undo     []earlier     `json:"undo"`     // sorted by key
}

// earlier is the content of a key before the trial.
type earlier struct {
	Key    string            `json:"key"`
	Value  json.RawMessage   `json:"value,omitempty"` // absent: there was none
	Labels map[string]string `json:"labels,omitempty"`
}

// New returns the trials of the Memory. Serve makes them usable.
func New(o Options) *Trials {
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Volatile == nil {
		o.Volatile = func(string) bool { return false }
	}
	if o.SyncLayers == nil {
		o.SyncLayers = func() error { return nil }
	}
	t := &Trials{Options: o, changed: wake.New(), open: map[string]*running{}, busy: map[string]int{}}
	if o.Memory != nil {
		t.load()
	}
	return t
}

// load reads the trials of an earlier run.
func (t *Trials) load() {
	now := time.Now()
	for layer, text := range t.Memory.Load() {
		r := &running{}
		if err := json.Unmarshal(text, &r.saved); err != nil || r.Layer != layer {
			t.Log.Error("a saved trial cannot be read; its values stay", "source", layer, "err", err)
			if err := t.forget(layer); err != nil {
				t.Log.Error("the saved trial cannot be deleted", "source", layer, "err", err)
			}
			continue
		}
		t.open[layer] = r
		left := min(r.Deadline.Sub(now), r.Time)
		if r.Deadline.IsZero() || left <= 0 {
			r.phase = ending
			t.first = append(t.first, r)
			continue
		}
		r.phase, r.end = applied, now.Add(left)
		t.Log.Info("a trial from before the restart goes on", "source", layer, "keys", len(r.Undo), "left", left)
	}
	slices.SortFunc(t.first, func(a, b *running) int { return strings.Compare(a.Layer, b.Layer) })
}

// Due returns the requests that take back the trials that were due at the start, for
// orchestrator.Options.First.
func (t *Trials) Due() (out []orchestrator.First) {
	for _, r := range t.first {
		out = append(out, orchestrator.First{Request: r.undo(), Made: func(err error) { t.madeFirst(r, err) }})
	}
	return out
}

// Serve sets the layers. It is called once, before the other methods.
func (t *Trials) Serve(layers Layers) { t.layers = layers }

// undo returns the request that takes a trial back.
func (s *saved) undo() orchestrator.Request {
	q := orchestrator.Request{Layer: s.Layer}
	for _, e := range s.Undo {
		d := orchestrator.Declared{Key: e.Key, Labels: e.Labels}
		if len(e.Value) > 0 {
			d.JSON = e.Value
		}
		q.Values = append(q.Values, d)
	}
	return q
}

// save writes a trial. It is called with mu held.
func (t *Trials) save(r *running) error {
	if t.Memory == nil || t.Volatile(r.Layer) {
		return nil
	}
	text, err := json.Marshal(r.saved)
	if err == nil {
		err = t.record(r.Layer, text)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotSaved, err)
	}
	return nil
}

// forget deletes a trial from the Memory, after what the trial has left in its layer is on the disk.
func (t *Trials) forget(layer string) error {
	if t.Memory == nil {
		return nil
	}
	if err := t.SyncLayers(); err != nil {
		return err
	}
	return t.record(layer, nil)
}

// record writes a saved trial, or deletes it, and waits for the disk: the changes of the layer that
// follow may be there sooner, since they have a file of their own.
func (t *Trials) record(layer string, text []byte) error {
	if err := t.Memory.Record(maps.All(map[string][]byte{layer: text})); err != nil {
		return err
	}
	return t.Memory.Sync()
}

// earlierOf returns the present content of the keys of a request.
func (t *Trials) earlierOf(ctx context.Context, q *orchestrator.Request) ([]earlier, error) {
	held, err := t.layers.Content(ctx, q.Layer)
	if err != nil && !errors.Is(err, orchestrator.ErrNoSource) { // a layer without values does not exist
		return nil, err
	}
	all := map[string]earlier{}
	for _, d := range q.Values {
		all[d.Key] = earlier{Key: d.Key}
	}
	for _, h := range held {
		if _, named := all[h.Key]; !named && !q.Replace {
			continue
		}
		e := earlier{Key: h.Key, Labels: h.Labels}
		if h.Message != nil {
			if e.Value, err = valueOf(h.Message); err != nil {
				return nil, fmt.Errorf("%s: %w", h.Key, err)
			}
		}
		all[h.Key] = e
	}
	return slices.SortedFunc(maps.Values(all), func(a, b earlier) int { return strings.Compare(a.Key, b.Key) }), nil
}

// valueOf returns a message as JSON. If its JSON is too large to be declared again, there is no trial.
func valueOf(m proto.Message) ([]byte, error) {
	text, err := models.JSON(m)
	if err == nil && len(text) > models.MaxSize {
		err = fmt.Errorf("%w to be taken back: %d bytes as JSON: expected at most %d", models.ErrTooLarge, len(text), models.MaxSize)
	}
	return text, err
}
