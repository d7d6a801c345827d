package leftovers

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// A Creation is an interface that VPP may have created without its tag.
type Creation struct {
	Value *interfaces.Interface
	Index uint32 // 0: unknown, as VPP's answer did not arrive
}

// Unconfirmed are creations with an unknown outcome: the connection broke, or the context
// ended, before VPP had the tag. The next dump looks for them. The zero value is empty.
type Unconfirmed struct {
	mu     sync.Mutex // guards all fields
	pid    uint32     // of VPP
	byName map[string]Creation
}

// IsUncertain tells whether VPP may have carried out a request that failed with err.
func IsUncertain(err error) bool {
	return errors.Is(err, conn.ErrCut) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Add notes that VPP may have created an interface.
func (u *Unconfirmed) Add(v *interfaces.Interface, index uint32) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byName == nil {
		u.byName = map[string]Creation{}
	}
	u.byName[v.GetName()] = Creation{v, index}
}

// All returns the creations to look for, by name.
func (u *Unconfirmed) All() map[string]Creation {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.byName)
}

// Forget forgets creations that a dump was searched for. Those that were added since stay.
func (u *Unconfirmed) Forget(searched map[string]Creation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, one := range searched {
		if u.byName[name] == one {
			delete(u.byName, name)
		}
	}
}

// Connected takes the process ID of VPP on each new connection, before any request. A new
// process has none of the creations. It tells whether VPP was restarted.
func (u *Unconfirmed) Connected(pid uint32) (restarted bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pid == pid {
		return false
	}
	u.pid, u.byName = pid, nil
	return true
}
