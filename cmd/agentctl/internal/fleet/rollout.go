package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/kvdbsync"
)

// atOnce is a store that makes several changes as one transaction.
type atOnce interface {
	kvdbsync.Store
	Apply(ctx context.Context, changes []kvdbsync.Pair) error
}

// A rollout brings a change to many labels.
type rollout struct {
	s        *session.Session
	store    atOnce
	patterns []string
	batch    int // labels at a time
	// The run stops after maxFailures labels have failed.
	maxFailures int
	wait, undo  bool
	patience    time.Duration // for one batch

	skipped int // agents that do not run
}

const (
	// pollPause is the time between two looks at the published status.
	pollPause = 300 * time.Millisecond
	// steadyTime is how long a result must stay the same. An agent writes the status of a key at most
	// once a second, so a text about the value before may arrive just after our change.
	steadyTime = 1500 * time.Millisecond
)

// errNotAll ends a run in which labels failed, were skipped or were not reached.
var errNotAll = errors.New("not all labels have the change")

// say prints what happens to a label.
func (o *rollout) say(label, text string) {
	fmt.Fprintf(o.s.Out, "%s: %s\n", show.Line(label), show.Remote(text))
}

// run changes all labels. The order of the jobs is that of the labels.
func (o *rollout) run(ctx context.Context, jobs []*job) error {
	failed, done := 0, 0
	for batch := range slices.Chunk(jobs, o.batch) {
		if failed >= o.maxFailures {
			break
		}
		failed += o.one(ctx, batch)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted; the same command continues: %w", ctx.Err())
		}
		done += len(batch)
	}
	fmt.Fprintf(o.s.Out, "%d of %d labels done, %d failed, %d not begun, %d skipped.\n", done-failed, len(jobs), failed, len(jobs)-done, o.skipped)
	if failed >= o.maxFailures && o.undo {
		if err := o.takeBack(ctx, jobs); err != nil {
			return err
		}
	}
	if failed > 0 || done < len(jobs) || o.skipped > 0 {
		return errNotAll
	}
	return nil
}

// one changes the labels of a batch, and waits for them. It returns how many failed.
func (o *rollout) one(ctx context.Context, batch []*job) (failed int) {
	var waiting []*job
	for _, j := range batch {
		text, err := o.write(ctx, j)
		switch {
		case err != nil:
			failed++
			o.say(j.label, "FAILED: "+err.Error())
		case o.wait:
			waiting = append(waiting, j)
		default:
			o.say(j.label, text)
		}
	}
	return failed + o.await(ctx, waiting)
}

// write writes the changes of a label as one transaction, unless the store has them already.
func (o *rollout) write(ctx context.Context, j *job) (text string, err error) {
	if err := j.read(ctx, o.store); err != nil { // others may have changed it since the plan
		return "", err
	}
	changes := j.differing()
	if len(changes) == 0 {
		return "unchanged", nil
	}
	if o.wait {
		if changes, err = o.withoutStatus(ctx, j, changes); err != nil {
			return "", fmt.Errorf("nothing was written: %w", err)
		}
	}
	err = o.store.Apply(ctx, changes)
	j.put = session.MayBeWritten(err)
	return "written", session.WriteError(err)
}

// withoutStatus removes the published status of the keys that get a value, because it describes the
// values before: at once with the changes, which it returns, if the store can make so many, otherwise
// now. That of the keys which are removed stays: the agent removes it, and so tells that it has acted.
func (o *rollout) withoutStatus(ctx context.Context, j *job, changes []kvdbsync.Pair) ([]kvdbsync.Pair, error) {
	if err := j.readRemoved(ctx, o.store, changes); err != nil {
		return nil, err
	}
	var old []kvdbsync.Pair
	for _, c := range changes {
		if c.Value != nil {
			old = append(old, kvdbsync.Pair{Key: statusKey(c.Key)})
		}
	}
	j.declares = len(old) > 0
	if len(changes)+len(old) <= kvdbsync.MaxApply {
		return append(changes, old...), nil
	}
	for part := range slices.Chunk(old, kvdbsync.MaxApply) {
		if err := o.store.Apply(ctx, part); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// await waits until each label has succeeded or failed, and returns how many failed. An outcome
// counts once it has stayed the same for the time steadyTime.
func (o *rollout) await(ctx context.Context, waiting []*job) (failed int) {
	late := time.Now().Add(o.patience)
	since := map[*job]time.Time{}
	last := map[*job]outcome{}
	for len(waiting) > 0 {
		var rest []*job
		for _, j := range waiting {
			v := o.look(ctx, j)
			now := time.Now()
			if v != last[j] || since[j].IsZero() {
				last[j], since[j] = v, now
			}
			switch steady := now.Sub(since[j]) >= steadyTime; {
			case steady && v.done:
				o.say(j.label, v.text)
			case steady && v.failed:
				failed++
				o.say(j.label, "FAILED: "+v.text)
			case now.After(late):
				failed++
				o.say(j.label, fmt.Sprintf("FAILED: not configured within %v: %s", o.patience, v.text))
			default:
				rest = append(rest, j)
			}
		}
		waiting = rest
		if len(waiting) > 0 && !backoff.Sleep(ctx, pollPause) {
			return failed
		}
	}
	return failed
}

// takeBack writes the values before the run again, in all labels that it has or may have changed. A key
// that somebody else has changed since then stays.
func (o *rollout) takeBack(ctx context.Context, jobs []*job) error {
	var errs []error
	for _, j := range jobs {
		if !j.put {
			continue
		}
		was := job{label: j.label, changes: j.changes}
		if err := was.read(ctx, o.store); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", j.label, err))
			continue
		}
		var back []kvdbsync.Pair
		others := 0
		for i, now := range was.before {
			switch {
			case same(now, j.before[i]):
			case !same(now, j.changes[i]):
				others++
			default:
				back = append(back, j.before[i])
			}
		}
		if err := o.applyAny(ctx, back); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", j.label, err))
			continue
		}
		text := "undone: " + show.Count(len(back), "key")
		if others > 0 {
			text += "; left, because somebody else has changed them: " + show.Count(others, "key")
		}
		o.say(j.label, text)
	}
	return errors.Join(errs...)
}

// applyAny makes changes; there may be none.
func (o *rollout) applyAny(ctx context.Context, changes []kvdbsync.Pair) error {
	if len(changes) == 0 {
		return nil
	}
	return o.store.Apply(ctx, changes)
}
