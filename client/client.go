// Package client declares values to an agent, and reads what became of them.
//
//	conn, err := client.Dial(ctx, client.Agent{Label: "vpp1"})
//	c := client.NewRemote(conn, client.Options{})          // over gRPC, from any process
//	c := client.NewLocal(sched, orch, client.Options{})    // in the agent's process
//	s := client.NewStore(etcd, "vpp1", client.Options{})   // into a store, without an agent
//
//	err := c.Put(ctx, &linux_interfaces.Interface{Name: "loop", ...})
//	err = c.Wait(ctx, &linux_interfaces.Interface{Name: "loop"})
//	routes, err := client.All[*l3.Route](ctx, c)
//
// A value is the message of a model. Its key is made of its content, so a message with only
// the fields of the key names a value, for Delete, Wait and the functions that read. All
// values that a client declares are a layer of the agent: see Options.Source.
//
// Each Put, Delete, Replace and Commit is one transaction. Errors about values are an *[Error] with
// both clients. All functions may be called from any goroutine, but not from a verb of a
// descriptor. Messages may not be changed after they were passed in, nor those returned.
//
// Tests run the same story with both clients, the remote one against the real server.
package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// A Client declares and reads values. NewLocal and NewRemote return one.
type Client interface {
	// Put declares values. Other values of the client stay.
	Put(ctx context.Context, values ...proto.Message) error
	// Delete withdraws values; only their keys count. If another source declares a value
	// too, that one takes effect.
	Delete(ctx context.Context, values ...proto.Message) error
	// Replace declares values, and withdraws all others of the client.
	Replace(ctx context.Context, values ...proto.Message) error
	// Commit makes all changes in one transaction: either order of dependent values is right,
	// and nothing is briefly absent that only moves to another key. If changes contradict each
	// other, the last one for a key counts.
	Commit(ctx context.Context, changes ...Change) error
	// Wait waits until the values are applied. It fails as soon as one of them is in a state
	// that does not change by itself: INVALID, FAILED or UNIMPLEMENTED. The error is an
	// *Error with each value that is not applied; when ctx ends it wraps that error too.
	Wait(ctx context.Context, values ...proto.Message) error

	// Get returns the declared values that take effect, of all sources, sorted by key; given
	// values select some by their keys.
	Get(ctx context.Context, values ...proto.Message) ([]Value, error)
	// Dump returns the values that are applied, as the agent knows them, sorted by key.
	Dump(ctx context.Context, values ...proto.Message) ([]Value, error)
	// Watch yields the present statuses of the values, or of all, and then each change. A
	// slow reader gets the newest status of each value. An error ends it.
	Watch(ctx context.Context, values ...proto.Message) iter.Seq2[Status, error]
	// Status returns the statuses of the given values, in their order. The state of an
	// unknown one is NONEXISTENT.
	Status(ctx context.Context, values ...proto.Message) ([]Status, error)
}

// A Change is a part of a transaction of Commit; Put and Delete make one. The zero Change
// has no effect.
type Change struct {
	values []proto.Message
	remove bool
}

// Put is a change that declares values.
func Put(values ...proto.Message) Change { return Change{values: values} }

// Delete is a change that withdraws values; only their keys count.
func Delete(values ...proto.Message) Change { return Change{values, true} }

// Options of a client; the zero value works.
type Options struct {
	// Source names the layer of the client's values, with which the agent stores them, and
	// which decides their priority. Clients with one Source share a layer. Defaults to
	// localclient in the agent's process, and to grpc over gRPC.
	Source string
	// Revert makes each change all or nothing. Defaults to best effort: refused values are
	// INVALID, failed ones are retried, and all others take effect.
	Revert bool
	// Models are the models of the values. Defaults to the built-in ones, or to those of the
	// scheduler in the agent's process.
	Models *models.Registry
}

// A Value is a message under its key.
type Value struct {
	Key     string
	Message proto.Message
}

// A Status is the state of one value at one time.
type Status struct {
	Key   string
	State kvscheduler.ValueState
	// Reason is the error, or the unmet dependencies; empty if there is none.
	Reason string
}

// An Error reports values that were refused, failed, or are not applied.
type Error struct {
	Failed []Failure
	err    error // the reason why waiting ended, or the status of gRPC; nil: none
}

// A Failure is the error of one value.
type Failure struct {
	Status
	// Fields are the paths of invalid fields: "ip_addresses[1]".
	Fields []string
}

// Error implements error.
func (e *Error) Error() string {
	var texts []string
	for _, f := range e.Failed {
		texts = append(texts, strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", f.Key, f.State, f.Reason), ": "))
	}
	if e.err != nil {
		texts = append(texts, e.err.Error())
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the error that ended the request, such as context.DeadlineExceeded.
func (e *Error) Unwrap() error { return e.err }

// All returns the declared values of one model that take effect, sorted by key.
func All[V proto.Message](ctx context.Context, c Client) ([]V, error) {
	values, err := c.Get(ctx)
	var out []V
	for _, v := range values {
		if one, ok := v.Message.(V); ok {
			out = append(out, one)
		}
	}
	return out, err
}

// keysOf returns the keys of values. The error joins those of all values.
func keysOf(r *models.Registry, values []proto.Message) (keys []string, err error) {
	var errs []error
	for _, v := range values {
		m, ok := r.ForMessage(v)
		if !ok {
			errs = append(errs, fmt.Errorf("%w: %T", models.ErrNoModel, v))
			continue
		}
		key, err := m.Key(v)
		if err != nil {
			errs = append(errs, fmt.Errorf("value of %s: %w", m.Name(), err))
		}
		keys = append(keys, key)
	}
	return keys, errors.Join(errs...)
}

// declared calls add with the key of each value of the changes, in their order. The message is nil
// if the key is to be withdrawn. If a value has no key, it calls add for none.
func declared(r *models.Registry, changes []Change, add func(key string, m proto.Message) error) error {
	var errs []error
	keys := make([][]string, len(changes))
	for i, c := range changes {
		var err error
		keys[i], err = keysOf(r, c.values)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, c := range changes {
		for j, key := range keys[i] {
			m := c.values[j]
			if c.remove {
				m = nil
			}
			if err := add(key, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// await reads statuses until all keys are applied, or one never will be. A status that
// means REMOVED or NONEXISTENT is not final: the transaction that declares the value may
// not have begun.
func await(ctx context.Context, keys []string, statuses iter.Seq2[Status, error]) error {
	open := map[string]Status{}
	for _, key := range keys {
		open[key] = Status{Key: key}
	}
	if len(open) == 0 {
		return nil
	}
	failure := func(err error) error {
		out := &Error{err: err}
		for _, key := range keys {
			// Until the end of ctx, a state that is not known yet may come.
			if st, ok := open[key]; ok && (ctx.Err() != nil || st.State != kvscheduler.ValueState_NONEXISTENT) {
				out.Failed = append(out.Failed, Failure{Status: st})
			}
		}
		return out
	}
	for st, err := range statuses {
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return failure(err)
		}
		switch st.State {
		case kvscheduler.ValueState_CONFIGURED, kvscheduler.ValueState_OBTAINED:
			delete(open, st.Key)
		case kvscheduler.ValueState_INVALID, kvscheduler.ValueState_FAILED, kvscheduler.ValueState_UNIMPLEMENTED:
			open[st.Key] = st
			return failure(nil)
		default:
			open[st.Key] = st
		}
		if len(open) == 0 {
			return nil
		}
	}
	return failure(ctx.Err())
}
