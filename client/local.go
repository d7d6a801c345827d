package client

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
)

// Layers takes declared values, and tells which take effect; see orchestrator.Orchestrator.
type Layers interface {
	Declare(ctx context.Context, q orchestrator.Request) (*scheduler.Record, error)
	Effective(ctx context.Context, keys ...string) ([]orchestrator.Effective, error)
}

// NewLocal returns a client in the process of the agent. Its layer is kept across restarts,
// so a program declares its values with Replace when it starts.
func NewLocal(sched *scheduler.Scheduler, layers Layers, o Options) Client {
	o.Source = cmp.Or(o.Source, "localclient")
	o.Models = cmp.Or(o.Models, sched.Models())
	return &local{o, sched, layers}
}

type local struct {
	Options
	sched  *scheduler.Scheduler
	layers Layers
}

func (l *local) Put(ctx context.Context, values ...proto.Message) error {
	return l.declare(ctx, false, Put(values...))
}

func (l *local) Delete(ctx context.Context, values ...proto.Message) error {
	return l.declare(ctx, false, Delete(values...))
}

func (l *local) Replace(ctx context.Context, values ...proto.Message) error {
	return l.declare(ctx, true, Put(values...))
}

func (l *local) Commit(ctx context.Context, changes ...Change) error {
	return l.declare(ctx, false, changes...)
}

// declare makes one transaction of changes.
func (l *local) declare(ctx context.Context, replace bool, changes ...Change) error {
	q := orchestrator.Request{Layer: l.Source, Replace: replace, Revert: l.Revert}
	err := declared(l.Models, changes, func(key string, m proto.Message) error {
		q.Values = append(q.Values, orchestrator.Declared{Key: key, Message: m})
		return nil
	})
	if err != nil {
		return err
	}
	_, err = l.layers.Declare(ctx, q)
	failed, ok := errors.AsType[*scheduler.TxnError](err)
	if !ok {
		return err
	}
	out := &Error{}
	for _, k := range failed.Failed {
		state := kvscheduler.ValueState_FAILED
		if st, ok := l.sched.Status(k.Key); ok && st.Err != nil {
			state = kvscheduler.ValueState(st.State) // such as RETRYING
		}
		if k.Verb == scheduler.Validate {
			state = kvscheduler.ValueState_INVALID
		}
		if errors.Is(k.Err, scheduler.ErrUnimplemented) {
			state = kvscheduler.ValueState_UNIMPLEMENTED
		}
		out.Failed = append(out.Failed, Failure{Status{k.Key, state, k.Err.Error()}, models.Fields(k.Err)})
	}
	return out
}

// Wait implements [Client]. It watches the scheduler directly, so it costs no request.
func (l *local) Wait(ctx context.Context, values ...proto.Message) error {
	keys, err := keysOf(l.Models, values)
	if err != nil {
		return err
	}
	return await(ctx, keys, l.Watch(ctx, values...))
}

// Get implements [Client].
func (l *local) Get(ctx context.Context, values ...proto.Message) ([]Value, error) {
	keys, err := keysOf(l.Models, values)
	if err != nil {
		return nil, err
	}
	all, err := l.layers.Effective(ctx, keys...)
	var out []Value
	for _, v := range all {
		out = append(out, Value{v.Key, v.Message})
	}
	return out, err
}

// Dump implements [Client]. It reads the scheduler's snapshot, not the system, so no
// transaction waits for it.
func (l *local) Dump(_ context.Context, values ...proto.Message) ([]Value, error) {
	keys, err := keysOf(l.Models, values)
	if err != nil {
		return nil, err
	}
	var out []Value
	for _, st := range l.sched.Statuses("") {
		if st.Actual == nil || st.Base != "" || keys != nil && !slices.Contains(keys, st.Key) {
			continue
		}
		if _, _, ok := l.Models.ByKey(st.Key); ok {
			out = append(out, Value{st.Key, st.Actual})
		}
	}
	return out, nil
}

// Status implements [Client].
func (l *local) Status(_ context.Context, values ...proto.Message) (out []Status, err error) {
	keys, err := keysOf(l.Models, values)
	for _, key := range keys {
		one := Status{Key: key}
		if st, ok := l.sched.Status(key); ok {
			one = statusOf(st)
		}
		out = append(out, one)
	}
	return out, err
}

// Watch implements [Client]. Values without a model, such as derived values, are left out:
// a remote client could not name them.
func (l *local) Watch(ctx context.Context, values ...proto.Message) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		keys, err := keysOf(l.Models, values)
		if err != nil {
			yield(Status{}, err)
			return
		}
		w := l.sched.Watch("")
		defer w.Close()
		for {
			changes, err := w.Next(ctx)
			if err != nil {
				yield(Status{}, err)
				return
			}
			for _, st := range changes {
				if _, _, ok := l.Models.ByKey(st.Key); !ok || keys != nil && !slices.Contains(keys, st.Key) {
					continue
				}
				if !yield(statusOf(st), nil) {
					return
				}
			}
		}
	}
}

// statusOf has the reason in the form of the server. So a program sees the same texts with
// both clients.
func statusOf(st *scheduler.Status) Status {
	out := Status{st.Key, kvscheduler.ValueState(st.State), strings.Join(st.Details, ", ")}
	if st.Err != nil {
		out.Reason = st.Err.Error()
	}
	return out
}
