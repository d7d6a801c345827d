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

// VPP does not enable a sub-interface while its parent is not; one that is enabled stays
// so whatever becomes of the parent. So it is enabled as soon as the parent is.

// finishEnabled says how it ended that the interface was to be up or down, as v says. That a
// sub-interface waits for its parent is no error.
func (h *handler) finishEnabled(ctx context.Context, v *interfaces.Interface, err error) error {
	if err == nil && !v.GetEnabled() {
		h.env.RaiseLinkOf(v)
	}
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
