package declare

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// An applier is a store that makes several changes at once.
type applier interface {
	Apply(ctx context.Context, changes []kvdbsync.Pair) error
}

// storeFiles writes the values of files into a store, as one transaction.
func (c *change) storeFiles(ctx context.Context, store kvdbsync.Store, args []string) error {
	deadline := time.Now().Add(c.Timeout)
	c.source = c.Store
	if err := c.read(args); err != nil {
		return err
	}
	return c.write(ctx, store, c.FullKey, deadline)
}

// completer returns the complete key of a value in a store.
type completer func(ctx context.Context, store kvdbsync.Store, short string) (full string, err error)

// write prints the changes that the documents cause in a store, and makes them, as one transaction.
func (c *change) write(ctx context.Context, store kvdbsync.Store, full completer, deadline time.Time) error {
	into, able := store.(applier)
	if !able {
		return fmt.Errorf("the store %s makes no changes at once", c.source)
	}
	values, err := c.values(ctx, c.from)
	if err != nil {
		return err
	}
	changes, err := documents.Pairs(values, func(short string) (string, error) { return full(ctx, store, short) })
	if err != nil {
		return err
	}
	answers, end, err := c.planForStore(ctx, store, changes)
	if err != nil {
		return err
	}
	defer end()
	if err := into.Apply(ctx, changes); err != nil {
		return session.WriteError(err)
	}
	done := "Written into the store %s: %s.\n"
	if c.removed > 0 {
		done = "Deleted from the store %s: %s.\n"
	}
	fmt.Fprintf(c.Out, done, show.Line(c.source), show.Count(len(changes), "key"))
	switch {
	case !c.wait:
		return nil
	case !answers:
		return errors.New("written, but no agent answers that follows this store: its effect is unknown")
	}
	return c.await(ctx, deadline.Add(-time.Second))
}

// values returns the values of the documents, and keeps the models that have them all.
func (c *change) values(ctx context.Context, from documents.Documents) (out []documents.Value, err error) {
	err = c.UseModels(ctx, func(known *models.Registry) (err error) {
		c.models = known
		out, err = from.Values(known)
		return err
	})
	if errors.Is(err, documents.ErrIgnored) {
		fmt.Fprintln(c.Err, show.Broken(c.Err, "agentctl: warning: "+err.Error(), 2))
		return out, nil
	}
	if err != nil {
		return nil, session.Lines(err)
	}
	return out, nil
}

// planForStore prints the changes that the agent would make or, if no agent answers that follows
// the store, the changes of the store. answers says which. The caller calls end after its last
// request.
func (c *change) planForStore(ctx context.Context, store kvdbsync.Store, changes []kvdbsync.Pair) (answers bool, end func(), err error) {
	leave, err := c.ReachStoreAgent(ctx)
	if err != nil {
		return false, nil, err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	p, err := c.plan(ctx)
	if err == nil {
		return true, leave, errors.Join(c.show(p), c.unmoved(p), c.leaveOut(p))
	}
	if c.saved != nil {
		return false, nil, err
	}
	if refused, ok := errors.AsType[session.StatusError](err); ok && refused.Status != http.StatusBadRequest && refused.Status != http.StatusNotFound {
		return false, nil, err
	}
	fmt.Fprintln(c.Err, show.Broken(c.Err, "agentctl: no plan of the agent, so these are the changes of the store: "+show.Remote(err.Error()), 2))
	all, err := c.differences(ctx, store, changes)
	if err != nil {
		return false, nil, err
	}
	return false, leave, show.Changes(c.Out, c.Env, "Plan for the store "+c.source, all, 0)
}

// shown returns a value of a store for people, without secrets; nil: it is not a valid value.
func (c *change) shown(key string, value []byte) *wire.Message {
	_, short, _ := strings.Cut(strings.TrimPrefix(key, session.AllAgents), "/")
	m, err := c.models.Decode(short, value)
	if err != nil {
		return nil
	}
	return wire.MessageOf(models.Redacted(m))
}

// differences returns the changes of a store for people.
func (c *change) differences(ctx context.Context, store kvdbsync.Store, changes []kvdbsync.Pair) (out []show.Change, err error) {
	for _, p := range changes {
		old, err := store.Get(ctx, p.Key)
		absent := errors.Is(err, kvdbsync.ErrNotFound)
		if err != nil && !absent {
			return nil, err
		}
		one := show.Change{Key: p.Key, Symbol: show.Updates}
		if !absent {
			one.Before = c.shown(p.Key, old)
		}
		if p.Value != nil {
			one.After = c.shown(p.Key, p.Value)
		}
		switch {
		case absent && p.Value == nil, string(old) == string(p.Value) && !absent && p.Value != nil:
			continue
		case absent:
			one.Symbol = show.Creates
		case p.Value == nil:
			one.Symbol = show.Deletes
		}
		out = append(out, one)
	}
	return out, nil
}
