package iface

import (
	"context"
	"errors"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// VPP does not enable a sub-interface while its parent is disabled. An enabled sub-
// interface stays enabled when its parent is disabled later. So the agent enables a sub-
// interface as soon as its parent is enabled.

// finishEnabled handles the answer to enabling or disabling an interface. A sub-interface
// that waits for its parent is no error.
func (h *handler) finishEnabled(ctx context.Context, v *interfaces.Interface, err error) error {
	if err == nil && !v.GetEnabled() {
		h.env.LinkRaiser(v)()
	}
	// VPP reports the case of a disabled parent only as UNSPECIFIED, which could be
	// anything. So the parent's flag is read before the error is ignored.
	parent, known := h.index.Get(v.GetSub().GetParentName())
	if !known || !errors.Is(err, api.UNSPECIFIED) {
		return err
	}
	h.env.AwaitedParents.Add(v.GetSub().GetParentName())
	all, lookErr := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: parent.SwIfIndex()})
	if lookErr != nil || len(all) != 1 || all[0].Flags&kinds.AdminUp != 0 {
		return errors.Join(err, lookErr)
	}
	return nil
}
