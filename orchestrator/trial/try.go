package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// Declare changes a layer that has no trial. All changes of clients go through it.
func (t *Trials) Declare(ctx context.Context, q orchestrator.Request) (*scheduler.Record, error) {
	if err := t.beginChange(q.Layer); err != nil {
		return nil, err
	}
	defer t.endChange(q.Layer)
	return t.layers.Declare(ctx, q)
}

// beginChange prevents a trial of a layer during another change of it.
func (t *Trials) beginChange(layer string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.vacate(layer); err != nil {
		return err
	}
	t.busy[layer]++
	return nil
}

// endChange ends what beginChange began.
func (t *Trials) endChange(layer string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[layer]--; t.busy[layer] == 0 {
		delete(t.busy, layer)
	}
}

// vacate returns an error if a layer has a trial that has not ended, or that the next start would
// take back. It is called with mu held.
func (t *Trials) vacate(layer string) error {
	switch r := t.open[layer]; {
	case r == nil:
		return nil
	case r.phase != undeleted:
		return onTrial(r)
	default:
		return t.remove(r)
	}
}

// onTrial is ErrOnTrial with the name of the layer and the end of its trial. It is called with mu
// held.
func onTrial(r *running) error {
	until := "until it is taken back"
	switch r.phase {
	case beginning:
		until = "until its values are applied"
	case applied:
		until = "until " + r.Deadline.Format(time.TimeOnly)
	case stuck:
		until = "until it is taken back or confirmed, because an earlier value is refused"
	case ending, overdue, undeleted:
	}
	return fmt.Errorf("%w: %s, %s", ErrOnTrial, r.Layer, until)
}

// Content implements Layers.
func (t *Trials) Content(ctx context.Context, source string) ([]orchestrator.Held, error) {
	return t.layers.Content(ctx, source)
}

// Try makes a change of a layer for a time, which begins when all of it has been applied. It is all
// or nothing. The errors are those of Declare, and those of this package.
func (t *Trials) Try(ctx context.Context, q orchestrator.Request, most time.Duration) (Trial, error) {
	if most < Shortest || most > Longest {
		return Trial{}, fmt.Errorf("%w: %v", ErrTime, most)
	}
	r := &running{saved: saved{Layer: q.Layer, Begun: time.Now(), Time: most}}
	if err := t.begin(r); err != nil {
		return Trial{}, err
	}
	if err := t.prepare(ctx, r, &q); err != nil {
		t.drop(r)
		return Trial{}, err
	}
	q.Revert = true
	// A client that leaves must not leave it open whether the trial runs.
	_, err := t.layers.Declare(context.WithoutCancel(ctx), q)
	switch {
	case errors.Is(err, orchestrator.ErrStopped):
		return Trial{}, err // nobody knows what is in effect; the next start takes it back
	case err != nil:
		t.drop(r)
		return Trial{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.end = time.Now().Add(most)
	r.Deadline, r.phase = r.end.Round(0), applied
	if err := t.save(r); err != nil {
		r.phase, r.end = overdue, time.Now() // Run takes it back
		t.changed.Set()
		return Trial{}, err
	}
	t.changed.Set()
	t.Log.Info("trial begins", "source", r.Layer, "keys", len(r.Undo), "time", most)
	return r.public(), nil
}

// begin enters a trial, so that its layer takes no other change.
func (t *Trials) begin(r *running) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Unable != nil {
		return fmt.Errorf("%w: %w", ErrNotSaved, t.Unable)
	}
	if err := t.vacate(r.Layer); err != nil {
		return err
	}
	if t.busy[r.Layer] > 0 {
		return fmt.Errorf("%w: %s", ErrBusy, r.Layer)
	}
	t.open[r.Layer] = r
	return nil
}

// prepare saves what takes the trial back, before anything is applied.
func (t *Trials) prepare(ctx context.Context, r *running, q *orchestrator.Request) (err error) {
	undo, err := t.earlierOf(ctx, q)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Undo = undo
	return t.save(r)
}

// drop removes a trial of which nothing is left. If it cannot be deleted, Run tries again.
func (t *Trials) drop(r *running) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.remove(r); err != nil {
		r.phase, r.end = undeleted, time.Now().Add(again)
		t.changed.Set()
		t.Log.Error("trial", "source", r.Layer, "err", err)
	}
}

// remove removes a trial, and frees its layer. It is called with mu held.
func (t *Trials) remove(r *running) error {
	if err := t.forget(r.Layer); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotDeleted, r.Layer, err)
	}
	delete(t.open, r.Layer)
	return nil
}

// public returns the trial as callers see it.
func (r *running) public() Trial {
	out := Trial{Layer: r.Layer, Begun: r.Begun, Deadline: r.Deadline}
	for _, e := range r.Undo {
		out.Keys = append(out.Keys, e.Key)
	}
	return out
}

// List returns the trials that have not ended, sorted by layer.
func (t *Trials) List() (out []Trial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.open {
		if r.phase != undeleted {
			out = append(out, r.public())
		}
	}
	slices.SortFunc(out, func(a, b Trial) int { return strings.Compare(a.Layer, b.Layer) })
	return out
}

// Confirm makes the change of a trial permanent. It fails if the trial cannot be deleted from the
// Memory, because the next start would take it back.
func (t *Trials) Confirm(layer string) (Trial, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.open[layer]
	if r == nil || r.phase != stuck && (r.phase != applied || !time.Now().Before(r.end)) {
		return Trial{}, fmt.Errorf("%w: %s", ErrNoTrial, layer)
	}
	if err := t.remove(r); err != nil {
		return Trial{}, fmt.Errorf("not confirmed: %w", err)
	}
	t.changed.Set()
	t.Log.Info("trial is confirmed", "source", layer, "keys", len(r.Undo))
	return r.public(), nil
}

// Cancel takes a trial back at once.
func (t *Trials) Cancel(ctx context.Context, layer string) (Trial, error) {
	t.mu.Lock()
	r := t.open[layer]
	if r == nil || r.phase != applied && r.phase != stuck {
		t.mu.Unlock()
		return Trial{}, fmt.Errorf("%w: %s", ErrNoTrial, layer)
	}
	r.phase = ending
	t.mu.Unlock()
	return r.public(), t.takeBack(ctx, r, "it was cancelled")
}

// takeBack restores the earlier values of a trial in the phase ending. Values that fail are
// retried by the scheduler, as always. If the change cannot even be declared, Run tries again.
func (t *Trials) takeBack(ctx context.Context, r *running, why string) error {
	ctx = context.WithoutCancel(ctx)
	_, err := t.layers.Declare(ctx, r.undo())
	if remains := t.remains(ctx, r, err); remains != nil {
		return t.postpone(r, remains)
	}
	t.drop(r)
	t.Log.Warn("trial is taken back", "source", r.Layer, "keys", len(r.Undo), "because", why, "err", err)
	return err
}

// remains returns why values of a trial are still declared after a request to take it back, which
// has ended with err; nil: none are. A *scheduler.TxnError lists the earlier values that are refused.
func (t *Trials) remains(ctx context.Context, r *running, err error) error {
	if _, failed := errors.AsType[*scheduler.TxnError](err); !failed {
		return err
	}
	// Values that err calls refused may be those of other sources.
	held, err := t.layers.Content(ctx, r.Layer)
	if err != nil && !errors.Is(err, orchestrator.ErrNoSource) {
		return err
	}
	var refused scheduler.TxnError
	for _, h := range held {
		if h.Err != nil && slices.ContainsFunc(r.Undo, func(e earlier) bool { return e.Key == h.Key }) {
			refused.Failed = append(refused.Failed, scheduler.KeyError{Key: h.Key, Verb: scheduler.Validate, Err: h.Err})
		}
	}
	if refused.Failed == nil {
		return nil
	}
	return &refused
}

// postpone keeps a trial that could not be taken back. To declare a refused value again would not help.
func (t *Trials) postpone(r *running, why error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, refused := errors.AsType[*scheduler.TxnError](why); refused {
		r.phase = stuck
		return fmt.Errorf("the trial cannot be taken back; confirm it to keep its values: %w", why)
	}
	r.phase, r.end = overdue, time.Now().Add(again)
	t.changed.Set()
	return fmt.Errorf("the trial cannot be taken back yet: %w", why)
}

// Run takes trials back when their time is over, until ctx ends.
func (t *Trials) Run(ctx context.Context) error {
	if err := t.finishFirst(ctx); err != nil {
		return nil //nolint:nilerr // ctx or the orchestrator has ended; the next start takes them back
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.changed.C():
		case <-timer.C:
			for _, r := range t.over() {
				if err := t.takeBack(ctx, r, "it was not confirmed in time"); err != nil {
					t.Log.Error("trial", "source", r.Layer, "err", err)
				}
			}
		}
		timer.Reset(t.next())
	}
}

// finishFirst drops the trials that the orchestrator has taken back before anything else. It
// answers only after that.
func (t *Trials) finishFirst(ctx context.Context) error {
	for _, r := range t.first {
		if _, err := t.layers.Content(ctx, r.Layer); err != nil && !errors.Is(err, orchestrator.ErrNoSource) {
			return err
		}
		if t.isPostponed(r) {
			continue
		}
		t.drop(r)
		t.Log.Warn("trial is taken back", "source", r.Layer, "keys", len(r.Undo), "because", "it was not confirmed before the restart")
	}
	return nil
}

// madeFirst notes whether the orchestrator could take a trial back before anything else, and could
// save that. Otherwise the trial is postponed: the next start would have its values.
func (t *Trials) madeFirst(r *running, err error) {
	if err != nil {
		t.Log.Error("trial", "source", r.Layer, "err", t.postpone(r, err))
	}
}

// isPostponed reports whether the trial still has to be taken back.
func (t *Trials) isPostponed(r *running) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.phase != ending
}

// over returns the trials with no time left, now in the phase ending. It deletes those that are
// undeleted.
func (t *Trials) over() (out []*running) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.open {
		switch {
		case !r.isTimed() || time.Now().Before(r.end):
		case r.phase != undeleted:
			r.phase = ending
			out = append(out, r)
		case t.remove(r) != nil: // logged the first time
			r.end = time.Now().Add(again)
		}
	}
	return out
}

// isTimed reports whether Run acts when the time of the trial is over.
func (r *running) isTimed() bool {
	return r.phase == applied || r.phase == overdue || r.phase == undeleted
}

// next returns the time until the next trial ends.
func (t *Trials) next() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := Longest
	for _, r := range t.open {
		if r.isTimed() {
			left = min(left, time.Until(r.end))
		}
	}
	return left
}
