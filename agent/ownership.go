package agent

import (
	"context"
	"errors"
	"log/slog"

	"github.com/keyplane/keyplane/internal/owner"
)

// ownership makes this agent the only one with its label on this host, together with the socket. The keepers of the
// stores do so for what comes from there.
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

// keepers returns the tasks that renew the leases.
func (s stores) keepers() (out []Task) {
	for _, one := range s {
		if one.keeper != nil {
			out = append(out, Task{"lease in " + one.name, one.keeper.Run})
		}
	}
	return out
}
