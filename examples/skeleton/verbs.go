package skeleton

import (
	"context"
	"errors"

	"github.com/keyplane/keyplane/scheduler"
)

// handler has the device of the verbs. It keeps no state: the scheduler knows the actual
// values, and the device knows the rest.
type handler struct{ device Device }

func (h *handler) create(ctx context.Context, _ string, v *Policer) (uint32, error) {
	id, err := h.device.Add(ctx, entryOf(v))
	if errors.Is(err, ErrTagTaken) {
		return h.adopt(ctx, v)
	}
	return id, err
}

// adopt takes over the policer of an earlier Create whose answer was lost. A policer on
// another port belongs to another version and is removed.
func (h *handler) adopt(ctx context.Context, v *Policer) (uint32, error) {
	entries, err := h.device.List(ctx)
	if err != nil {
		return 0, err
	}
	want := entryOf(v)
	for id, e := range entries {
		switch {
		case e.Tag != want.Tag:
		case e.Port == want.Port:
			return id, h.device.Set(ctx, id, want)
		default:
			if err := h.device.Remove(ctx, id); err != nil {
				return 0, err
			}
		}
	}
	return h.device.Add(ctx, want)
}

func (h *handler) update(ctx context.Context, _ string, _, v *Policer, id uint32) (uint32, error) {
	return id, h.device.Set(ctx, id, entryOf(v))
}

func (h *handler) delete(ctx context.Context, _ string, _ *Policer, id uint32) error {
	err := h.device.Remove(ctx, id)
	if errors.Is(err, ErrNoPolicer) {
		return nil // it is gone already, as Delete requires
	}
	return err
}

func (h *handler) retrieve(ctx context.Context, _ []scheduler.Desired[*Policer]) scheduler.Retrieved[*Policer, uint32] {
	return func(yield func(scheduler.Found[*Policer, uint32], error) bool) {
		entries, err := h.device.List(ctx)
		if err != nil {
			yield(scheduler.Found[*Policer, uint32]{}, err)
			return
		}
		for id, e := range entries {
			v, ours := valueOf(e)
			if ours && !yield(scheduler.Found[*Policer, uint32]{Key: Prefix + v.Name, Value: v, Meta: id}, nil) {
				return
			}
		}
	}
}
