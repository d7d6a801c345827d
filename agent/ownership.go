package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/internal/owner"
)

// leaseTimeout limits the wait for a store's lease at the start. A slower store is asked
// again while the agent runs, before any of its values is applied.
const leaseTimeout = time.Second

// ownership makes this agent the only one with its label, together with the socket and the
// keepers of the stores.
type ownership struct {
	// The lock of the state folder. It also holds the identity of this installation.
	folder *owner.Folder
	// A socket in the network namespace: it also stops an agent with another state folder.
	guard *owner.Guard
	self  owner.Holder
}

// own claims the state folder and the network namespace for a label. The error is a
// *owner.TakenError if another agent holds one of them.
func own(ctx context.Context, dir, label string, log *slog.Logger) (ownership, error) {
	folder, err := owner.OpenFolder(dir, label, log)
	if err != nil {
		return ownership{}, err
	}
	o := ownership{folder: folder, self: owner.Self(label, folder.Installation)}
	folder.Name(o.self)
	o.guard, err = owner.Listen(ctx, o.self, log)
	if err != nil {
		return ownership{}, errors.Join(err, folder.Close())
	}
	return o, nil
}

// Close releases the label.
func (o ownership) Close() error { return errors.Join(o.guard.Close(), o.folder.Close()) }

// take claims the label in all stores that support leases.
func (s stores) take(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, one := range s {
		if one.keeper != nil {
			g.Go(func() error { return one.keeper.Take(ctx, leaseTimeout) })
		}
	}
	return g.Wait()
}

// keepers returns the tasks that renew the leases.
func (s stores) keepers() (out []Task) {
	for _, one := range s {
		if one.keeper != nil {
			out = append(out, Task{"lease in " + one.name, one.keeper.Run})
		}
	}
	return out
}

// release releases the leases that no task has released.
func (s stores) release() {
	for _, one := range s {
		if one.keeper != nil {
			one.keeper.Close()
		}
	}
}
