package leftovers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"slices"
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
	run    string     // of VPP; see conn.About
	byName map[string]Creation
	memory scheduler.Memory // for creations that a kill of the agent interrupts; nil: none
	log    *slog.Logger
}

// creationKeys is the prefix of the keys in the memory, which has other records too. The name
// follows. A record is the run of VPP, a zero byte, and the value. In a record of earlier versions, the process ID of
// VPP in 4 bytes is before the value. Its first byte is 0, as no process has such a large number.
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
	u.save(map[string][]byte{v.GetName(): slices.Concat([]byte(u.run), []byte{0}, value)})
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

// Connected takes the process ID and the run of VPP on each new connection, before any request. A
// new run has none of the creations. It tells whether VPP was restarted. The process ID alone does not: in a container
// it is always 1.
func (u *Unconfirmed) Connected(pid uint32, run string) (restarted bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.run == run {
		return false
	}
	u.pid, u.run, u.byName = pid, run, nil
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
		value, ours := u.ofThisRun(data)
		if !ours || proto.Unmarshal(value, v) != nil {
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

// ofThisRun returns the value of a record, if it is about this run of VPP. The caller holds mu.
func (u *Unconfirmed) ofThisRun(record []byte) (value []byte, ours bool) {
	if len(record) >= 4 && record[0] == 0 {
		return record[4:], binary.BigEndian.Uint32(record) == u.pid
	}
	run, value, is := bytes.Cut(record, []byte{0})
	return value, is && string(run) == u.run
}
