package leftovers

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// A Creation is an interface that VPP may have created without its tag.
type Creation struct {
	Value *interfaces.Interface
	Index uint32 // 0: unknown, as VPP's answer did not arrive
}

// Unconfirmed are creations with an unknown outcome: the connection broke, the context ended, or
// the agent was killed, before VPP had the tag. The next dump looks for them. The zero value is
// empty.
type Unconfirmed struct {
	mu     sync.Mutex // guards all fields
	pid    uint32     // of VPP
	byName map[string]Creation
	memory scheduler.Memory // for creations that a kill of the agent interrupts; nil: none
	log    *slog.Logger
}

// creationKeys is the prefix of the keys in the memory, which has other records too. The name
// follows. A record is the process ID of VPP and the value.
const creationKeys = "creation/"

// KeepIn has creations that a kill of the agent interrupts survive in a memory. It is called
// before all other methods.
func (u *Unconfirmed) KeepIn(memory scheduler.Memory, log *slog.Logger) {
	u.memory, u.log = memory, log
}

// IsUncertain tells whether VPP may have carried out a request that failed with err.
func IsUncertain(err error) bool {
	return errors.Is(err, conn.ErrCut) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Begin notes that VPP is about to have an interface without its tag, until end is called: the
// agent may be killed meanwhile, and the value may not be declared any more after that.
func (u *Unconfirmed) Begin(v *interfaces.Interface) (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.memory == nil {
		return func() {}
	}
	value, err := proto.Marshal(v)
	if err != nil {
		u.log.Error("a creation cannot be noted; a kill of the agent may leave the interface in VPP", "name", v.GetName(), "err", err)
		return func() {}
	}
	u.save(map[string][]byte{v.GetName(): append(binary.BigEndian.AppendUint32(nil, u.pid), value...)})
	return func() { u.end(v.GetName()) }
}

// end forgets what Begin has noted, unless the outcome is unknown.
func (u *Unconfirmed) end(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, unknown := u.byName[name]; !unknown {
		u.save(map[string][]byte{name: nil})
	}
}

// save changes records of the memory, by name. The caller holds mu.
func (u *Unconfirmed) save(records map[string][]byte) {
	if u.memory == nil || len(records) == 0 {
		return
	}
	changes := map[string][]byte{}
	for name, data := range records {
		changes[creationKeys+name] = data
	}
	if err := u.memory.Save(maps.All(changes)); err != nil {
		u.log.Error("creations cannot be noted; a kill of the agent may leave interfaces in VPP", "err", err)
	}
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
	forgotten := map[string][]byte{}
	for name, one := range searched {
		if u.byName[name] == one {
			delete(u.byName, name)
			forgotten[name] = nil
		}
	}
	u.save(forgotten)
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
	u.recall()
	return true
}

// recall takes the creations of this VPP from the memory, and removes those of earlier ones. The
// caller holds mu.
func (u *Unconfirmed) recall() {
	if u.memory == nil {
		return
	}
	over := map[string][]byte{}
	for key, data := range u.memory.Load() {
		name, is := strings.CutPrefix(key, creationKeys)
		if !is {
			continue
		}
		v := &interfaces.Interface{}
		if len(data) < 4 || binary.BigEndian.Uint32(data) != u.pid || proto.Unmarshal(data[4:], v) != nil {
			over[name] = nil
			continue
		}
		if u.byName == nil {
			u.byName = map[string]Creation{}
		}
		u.byName[name] = Creation{Value: v}
	}
	u.save(over)
}
