package orchestrator

import (
	"errors"
	"log/slog"
	"reflect"
	"time"

	"github.com/keyplane/keyplane/internal/keyset"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// A source is a Source with its content.
type source struct {
	Source
	rank     int // its index in Orchestrator.sources
	entries  *keyset.Set[entry]
	refused  int // number of entries with an error
	synced   bool
	busy     bool // a change of it is being decoded; see largeDecoder
	layer    bool // it exists while it has keys; see LayerOptions
	volatile bool // the Memory does not keep it
	// It is known from the Memory only; see unconfigured.go.
	unconfigured bool
	problems     []error
	doubts       []*doubt  // sorted by deadline; none is empty
	asked        time.Time // when a listing was last requested because of doubts

	// saved is the content from before the restart, without the keys that the source has
	// delivered since. It is nil after the first complete listing.
	saved     map[string]*savedKey
	usesSaved bool            // saved content was used as entries
	savedKeys int             // number of saved keys at the start
	dataset   dataset         // the last known dataset
	distrust  error           // why the first listing may show another dataset
	missed    map[string]bool // keys with operations that were withheld; see withholder
	// unrecorded are changes of Options.First that the Memory could not record. The next recorded
	// request has them.
	unrecorded []unsavedEvent

	published published
}

// An entry is the content of a source under one key: the last valid value, and the error
// of the newest one if that is refused. It is immutable, except for rev.
type entry struct {
	last scheduler.Value // the last valid value; the zero Value: none
	rare *rareContent    // nil: there is a valid value and nothing else; see newEntry
	// rev is the revision of the newest value in its store; 0: it is not known. Of a saved value it is set
	// when the store confirms it; only Run's goroutine reads it.
	rev int64
}

// A rareContent is what most entries do not have.
type rareContent struct {
	key    string
	err    error // why the newest value is refused
	labels map[string]string
	by     string // who asked for the newest value; see Request.By
}

// newEntry returns the content of a key. valid may be nil.
func newEntry(key string, valid *scheduler.Value, err error, labels map[string]string) *entry {
	return newEntryBy("", key, valid, err, labels)
}

// newEntryBy is newEntry for the value that somebody asked for.
func newEntryBy(by, key string, valid *scheduler.Value, err error, labels map[string]string) *entry {
	e := &entry{}
	if valid != nil {
		e.last = *valid
	}
	if valid == nil || valid.Key() != key || err != nil || len(labels) > 0 || by != "" {
		e.rare = &rareContent{key, err, labels, by}
	}
	return e
}

// newEntries returns an empty set of entries.
func newEntries() *keyset.Set[entry] { return keyset.New((*entry).key) }

// key returns the key of the entry.
func (e *entry) key() string {
	if e.rare != nil {
		return e.rare.key
	}
	return e.last.Key()
}

// valid returns the last valid value, or nil. A nil entry has none.
func (e *entry) valid() *scheduler.Value {
	if e == nil || e.last == (scheduler.Value{}) {
		return nil
	}
	return &e.last
}

// err returns why the newest value is refused. A nil entry has no error.
func (e *entry) err() error {
	if e == nil || e.rare == nil {
		return nil
	}
	return e.rare.err
}

// labels returns the labels of the entry. A nil entry has none.
func (e *entry) labels() map[string]string {
	if e == nil || e.rare == nil {
		return nil
	}
	return e.rare.labels
}

// writer returns who wrote the newest value, in the words of the transaction that brought it.
func (e *entry) writer(source string) string {
	by := ""
	if e.rare != nil {
		by = e.rare.by
	}
	return writer(source, by, e.rev, e.rev)
}

// set replaces the entry of a key; nil deletes it.
func (l *source) set(key string, old, e *entry) {
	if old.err() != nil {
		l.refused--
	}
	if e.err() != nil {
		l.refused++
	}
	if e == nil {
		l.entries.Delete(key)
	} else {
		l.entries.Put(e)
	}
}

// memoryName is the name of the source in the Memory.
func (l *source) memoryName() string {
	if l.layer {
		return layerMark + l.Name
	}
	return l.Name
}

// ready has a token when the source has changes.
func (l *source) ready() <-chan struct{} {
	if l.Local != nil {
		return l.Local.ready.C()
	}
	return l.Feed.Ready()
}

// awaited returns the channel of ready, or none while a change of the source is being
// decoded: its next change is merged after that one.
func (l *source) awaited() reflect.Value {
	if l.busy {
		return reflect.Value{}
	}
	return reflect.ValueOf(l.ready())
}

// arriving reports that the first listing of the source may be complete soon: it is being
// read, or nothing has prevented the connection so far.
func (l *source) arriving() bool {
	source, ok := l.Feed.(healthReporter)
	if !ok {
		return false
	}
	h := source.Health()
	return h.State == kvdbsync.Syncing || h.State == kvdbsync.Connecting && h.Err == nil
}

// withheld reports that the store answers, but nothing of it may be applied, and so nothing that it said before the restart.
func (l *source) withheld() bool {
	source, ok := l.Feed.(healthReporter)
	return ok && source.Health().State == kvdbsync.Withheld
}

// isOfAnother reports that another agent has the label in the store, so that nothing of it concerns this agent. That may be so for
// months, so nobody waits for the end.
func (l *source) isOfAnother() bool {
	source, ok := l.Feed.(healthReporter)
	return ok && errors.Is(source.Health().Err, kvdbsync.ErrTaken)
}

// reportProblems replaces the problems, and logs the first new ones and the number of all.
func (l *source) reportProblems(log *slog.Logger, problems []error) {
	known := map[string]bool{}
	for _, p := range l.problems {
		known[p.Error()] = true
	}
	logged, fresh := 0, 0
	for _, p := range problems {
		if known[p.Error()] {
			continue
		}
		if fresh++; logged < maxFaults {
			logged++
			log.Error("source has a problem", "source", l.Name, "err", p)
		}
	}
	if fresh > logged {
		log.Error("source has more problems", "source", l.Name, "more", fresh-logged, "problems", len(problems))
	}
	if len(problems) == 0 && len(l.problems) > 0 {
		log.Info("source has no problems any more", "source", l.Name)
	}
	l.problems = problems
	l.publishProblems()
}

// maxLoggedRefusals is how many refused values of one change are logged one by one. Their
// status shows all.
const maxLoggedRefusals = 20

// reportRefusals logs the refused values of a change.
func (o *Orchestrator) reportRefusals(l *source, events []kvdbsync.Event, ds []decoded) {
	refused := 0
	for i, d := range ds {
		if d.err == nil {
			continue
		}
		if refused++; refused > maxLoggedRefusals {
			continue
		}
		log, text := o.log.Error, "value refused; the last valid value stays in effect"
		if l.entries.Get(events[i].Key).valid() == nil {
			text = "value refused; the source has had no valid value for this key"
		}
		if errors.Is(d.err, scheduler.ErrUnimplemented) {
			log, text = o.log.Warn, "no descriptor handles this key; its state is UNIMPLEMENTED"
		}
		args := []any{"source", l.Name, "key", events[i].Key, "err", d.err}
		if at := events[i].Origin.String(); at != "" {
			args = append(args, "at", at)
		}
		log(text, args...)
	}
	if refused > maxLoggedRefusals {
		o.log.Error("more values refused; their status has the reasons", "source", l.Name, "more", refused-maxLoggedRefusals)
	}
}

// maxLoggedFailures is how many failed operations of one transaction are logged one by one.
const maxLoggedFailures = 10

// report logs failed operations of a transaction, and returns whether some were withheld. The scheduler itself logs what it
// cannot read back.
func (o *Orchestrator) report(r *scheduler.Record) (withheld bool) {
	failed := 0
	for _, op := range r.Executed.All() {
		if op.NewErr == nil || op.Noop {
			continue
		}
		withheld = withheld || errors.Is(op.NewErr, errWithheld)
		if failed++; failed <= maxLoggedFailures {
			o.log.Warn("operation failed", "key", op.Key, "operation", op.Verb, "state", op.NewState, "err", op.NewErr)
		}
	}
	if failed > maxLoggedFailures {
		o.log.Warn("more operations failed; their status has the reasons", "transaction", r.Seq, "more", failed-maxLoggedFailures)
	}
	return withheld
}
