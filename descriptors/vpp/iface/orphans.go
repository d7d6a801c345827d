package iface

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// An orphan may have been made, but VPP may not have been told its name: the connection
// broke before.
type orphan struct {
	value *interfaces.Interface
	index uint32 // 0: not known, as there was no answer
}

// orphans are looked for when VPP is there again: among the interfaces without a name,
// one is ours if nobody has seen its index before the connection broke, and if it is just
// what the value makes. VPP answers what was asked, in order, before it tells of
// what it did: so an index that events or a look told of is not that of an orphan.
type orphans struct {
	mu     sync.Mutex        // guards what follows
	pid    uint32            // of VPP
	byName map[string]orphan // nil at first
}

// uncertain tells whether err leaves open what VPP has done.
func uncertain(err error) bool {
	return errors.Is(err, conn.ErrCut) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// add notes that an interface may have been made.
func (o *orphans) add(v *interfaces.Interface, index uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byName == nil {
		o.byName = map[string]orphan{}
	}
	o.byName[v.GetName()] = orphan{v, index}
}

// all are those that are to be looked for, by name.
func (o *orphans) all() map[string]orphan {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.byName)
}

// settle forgets orphans that have been looked for.
func (o *orphans) settle(looked map[string]orphan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, one := range looked {
		if o.byName[name] == one {
			delete(o.byName, name)
		}
	}
}

// connected is called with each new connection, before anything is asked: a VPP that was
// started anew has none of ours. It tells whether it may be one.
func (o *orphans) connected(pid uint32) (other bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if other = o.pid != pid; other {
		o.pid, o.byName = pid, nil
	}
	return other
}

// couldBe are the interfaces that may be orphans, by index.
func couldBe(all map[uint32]*found, lost map[string]orphan, known map[uint32]bool) []*found {
	for _, one := range lost {
		delete(known, one.index)
	}
	return slices.DeleteFunc(sorted(all), func(f *found) bool {
		return f.details.Tag != "" || f.meta.Index == 0 || known[f.meta.Index]
	})
}

// adopt gives the orphans that VPP has their names, and tells whether it had to look for
// any. Each interface in question is held against each orphan: what VPP does not tell of
// it is then what the orphan says.
func (h *handler) adopt(ctx context.Context, all map[uint32]*found, lost map[string]orphan) (looked bool, err error) {
	strays := couldBe(all, lost, h.table.ReportedIndexes())
	if len(strays) == 0 {
		return false, nil
	}
	placed, loose := map[uint32]string{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		if index := lost[name].index; index != 0 {
			placed[index] = name
		} else {
			loose = append(loose, name)
		}
	}
	for round := range max(1, len(loose)) {
		for i, f := range strays {
			name := placed[f.meta.Index]
			if name == "" && len(loose) > 0 {
				name = loose[(i+round)%len(loose)]
			}
			f.wanted = lost[name].value
		}
		if err := h.nameThose(ctx, all, strays); err != nil {
			return true, err
		}
	}
	return true, nil
}

// nameThose names the strays that are just what they are held against, each name once.
func (h *handler) nameThose(ctx context.Context, all map[uint32]*found, strays []*found) error {
	if err := h.lookAtLinks(ctx, all); err != nil {
		return err
	}
	for _, f := range strays {
		if f.details.Tag != "" || f.wanted == nil || named(all, f.wanted.GetName()) || !h.madeBy(f, f.wanted) {
			continue
		}
		if err := h.setTag(ctx, f.meta, f.wanted.GetName()); err != nil {
			return err
		}
		f.details.Tag, f.value.Name = f.wanted.GetName(), f.wanted.GetName()
	}
	return nil
}

// named tells whether an interface has the name.
func named(all map[uint32]*found, name string) bool {
	for _, f := range all {
		if f.details.Tag == name {
			return true
		}
	}
	return false
}
