package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/internal/owner"
)

// leasePatience is how long a store may take at the start to say whose the label is. One
// that is silent for longer is asked again while the agent runs, before anything that it
// says is applied.
const leasePatience = time.Second

// ownership is what makes this agent the only one of its label, besides the socket and
// the keepers of the stores.
type ownership struct {
	folder *owner.Folder
	guard  *owner.Guard
	self   owner.Holder
}

// own takes the state folder and the network namespace for a label. The error is a
// *owner.TakenError if another agent has one of them.
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

// Close lets the label go.
func (o ownership) Close() error { return errors.Join(o.guard.Close(), o.folder.Close()) }

// take takes the label in all stores that have leases.
func (s stores) take(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, one := range s {
		if one.keeper != nil {
			g.Go(func() error { return one.keeper.Take(ctx, leasePatience) })
		}
	}
	return g.Wait()
}

// keepers are the tasks that hold the label.
func (s stores) keepers() (out []task) {
	for _, one := range s {
		if one.keeper != nil {
			out = append(out, one.keeper.Run)
		}
	}
	return out
}

// letGo releases the label, where no task has.
func (s stores) letGo() {
	for _, one := range s {
		if one.keeper != nil {
			one.keeper.Close()
		}
	}
}
