package iface

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// members maps interfaces to their VRFs, by name. The zero value is empty.
type members struct {
	mu  sync.Mutex // guards vrf
	vrf map[string]string
}

// of returns the VRF of an interface; empty: none.
func (m *members) of(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.vrf[name]
}

// enter records that an interface is in a VRF; "" means none.
func (m *members) enter(name, vrf string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.vrf == nil {
		m.vrf = map[string]string{}
	}
	m.vrf[name] = vrf
	if vrf == "" {
		delete(m.vrf, name)
	}
}

// leave removes the record, unless the interface has entered another VRF meanwhile.
func (m *members) leave(name, vrf string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.vrf[name] == vrf {
		delete(m.vrf, name)
	}
}

// validateVRF refuses a key whose parts cannot be read.
func validateVRF(key string, _ *interfaces.Interface) error {
	name, vrf, ok := keys.ParseVRF(key)
	if !ok || name == keys.Invalid || vrf == keys.Invalid {
		return fmt.Errorf("%w: %s", errKey, key)
	}
	return nil
}

// sameVRF: the key contains the interface and the VRF.
func sameVRF(string, *interfaces.Interface, *interfaces.Interface) bool { return true }

// vrfDependencies requires the VRF device. An existing interface is put into it by others,
// so the membership waits until the kernel shows it.
func vrfDependencies(key string, v *interfaces.Interface) []scheduler.Dependency {
	_, vrf, _ := keys.ParseVRF(key)
	deps := []scheduler.Dependency{{Label: "vrf-device-is-created", Key: keyOf(vrf)}}
	if v.GetType() == interfaces.Interface_EXISTING {
		in := keys.HostVRFs(hostName(v))
		deps = append(deps, scheduler.Dependency{Label: "inserted-into-vrf-externally", Prefixes: []string{in}})
	}
	return deps
}

// createVRF adds the interface to its VRF. For an EXISTING interface it only verifies the
// membership.
func (h *handler) createVRF(_ context.Context, key string, v *interfaces.Interface) (struct{}, error) {
	none := struct{}{}
	name, vrf, _ := keys.ParseVRF(key)
	meta, space, err := h.openInterface(name)
	if err != nil {
		return none, err
	}
	defer space.Close()
	master, ok := h.index.Get(vrf)
	if !ok {
		return none, fmt.Errorf("%s: %w", vrf, ErrNotFound)
	}
	if master.NS != meta.NS {
		return none, fmt.Errorf("%s is in %s, but its VRF %s is in %s; both must be in the same namespace",
			name, netns.Text(meta.Namespace), vrf, netns.Text(master.Namespace))
	}
	l, err := space.LinkByIndex(meta.Index)
	if err != nil {
		return none, err
	}
	switch {
	case l.Master == master.Index:
	case v.GetType() == interfaces.Interface_EXISTING:
		return none, fmt.Errorf("%s is not in VRF %s: the agent does not add an EXISTING interface to a VRF", l.Name, vrf)
	default:
		if err := space.SetMaster(meta.Index, master.Index); err != nil {
			return none, err
		}
	}
	h.members.enter(name, vrf)
	h.Watch.Created(space, drift.Membership(space.ID, meta.Index), drift.Entry{Key: key, Link: meta.Index, Master: master.Index}, 0)
	return none, nil
}

// deleteVRF takes the interface out of its VRF, unless it is in another one by now. Forget comes first, so the kernel's event
// is not taken for drift.
func (h *handler) deleteVRF(_ context.Context, key string, v *interfaces.Interface, _ struct{}) error {
	name, vrf, _ := keys.ParseVRF(key)
	h.members.leave(name, vrf)
	meta, space, err := h.openInterface(name)
	if err != nil {
		return nil //nolint:nilerr // the membership vanished with the interface or its namespace
	}
	defer space.Close()
	h.Watch.ForgetAs(drift.Membership(space.ID, meta.Index), key)
	if v.GetType() == interfaces.Interface_EXISTING {
		return nil
	}
	l, err := space.LinkByIndex(meta.Index)
	if master, ok := h.index.Get(vrf); err == nil && ok && l.Master == master.Index {
		err = space.SetMaster(meta.Index, 0)
	}
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
