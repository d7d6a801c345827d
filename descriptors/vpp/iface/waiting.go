package iface

import (
	"context"
	"errors"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// VPP does not enable a sub-interface while its parent is not; one that is enabled stays
// so whatever becomes of the parent. So it is enabled as soon as the parent is.

// enabled says how it ended that the interface was to be up or down, as v says. That a
// sub-interface waits for its parent is no error.
func (h *handler) enabled(ctx context.Context, v *interfaces.Interface, err error) error {
	if err == nil && !v.GetEnabled() {
		h.raise(v)
	}
	parent, known := h.index.Get(v.GetSub().GetParentName())
	if !known || !errors.Is(err, api.UNSPECIFIED) {
		return err
	}
	h.awaits(v.GetSub().GetParentName())
	all, lookErr := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: parent.SwIfIndex()})
	if lookErr != nil || len(all) != 1 || all[0].Flags&adminUp != 0 {
		return errors.Join(err, lookErr)
	}
	return nil
}

// awaits notes that a sub-interface waits for its parent.
func (h *handler) awaits(parent string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.awaited == nil {
		h.awaited = map[string]bool{}
	}
	h.awaited[parent] = true
}

// isAwaited tells whether sub-interfaces have waited for an interface.
func (h *handler) isAwaited(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.awaited[name]
}

// forgetAwaited forgets it: what waits still is found to when it is read back.
func (h *handler) forgetAwaited() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.awaited)
}

// wait finds a sub-interface as enabled as it can be while its parent is not.
func (h *handler) wait(f, parent *found) {
	if parent.details.Flags&adminUp == 0 && f.wanted.GetEnabled() {
		f.value.Enabled = true
		h.awaits(parent.value.GetName())
	}
}
