package punt

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	vpppunt "go.fd.io/govpp/binapi/punt"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/punt"
	"github.com/keyplane/keyplane/scheduler"
)

// exceptionDescriptor implements the sockets for packets that VPP has given up.
func (h *handler) exceptionDescriptor() scheduler.Descriptor[*punt.Exception, struct{}] {
	return scheduler.Descriptor[*punt.Exception, struct{}]{
		Name:  ExceptionName,
		Model: models.For[*punt.Exception](),

		Validate: func(_ string, v *punt.Exception) error {
			var f models.Faults
			if v.GetReason() == "" {
				f.Add("reason", "", "the name of a reason, as vppctl show punt reasons lists it")
			}
			checkPath(&f, v.GetSocketPath())
			return f.Err()
		},

		Create: func(ctx context.Context, _ string, v *punt.Exception) (struct{}, error) {
			return struct{}{}, h.catch(ctx, v)
		},
		Update: func(ctx context.Context, _ string, _, v *punt.Exception, _ struct{}) (struct{}, error) {
			return struct{}{}, h.catch(ctx, v)
		},
		Delete: func(ctx context.Context, _ string, v *punt.Exception, _ struct{}) error {
			ids, err := h.reasons(ctx)
			id, has := ids[v.GetReason()]
			if err != nil || !has {
				return err
			}
			return h.deregister(ctx, reasonOf(id))
		},
		Retrieve: readback.Retriever[*punt.Exception]{Read: h.readExceptions, ID: (*punt.Exception).GetReason}.Retrieve,
	}
}

// reasonOf returns the packets that VPP has given up for a reason.
func reasonOf(id uint32) vpppunt.Punt {
	return vpppunt.Punt{Type: vpppunt.PUNT_API_TYPE_EXCEPTION, Punt: vpppunt.PuntUnionException(vpppunt.PuntException{ID: id})}
}

// reasons returns the numbers of reasons by name. VPP's plugins give them out when they are
// loaded, so a number means another reason after a restart.
func (h *handler) reasons(ctx context.Context) (map[string]uint32, error) {
	if _, err := h.API.First(&vpppunt.PuntReasonDump{}); err != nil {
		return nil, err // no reason could be told from those that do not exist
	}
	all, err := conn.Dump[vpppunt.PuntReasonDetails](ctx, h.API, &vpppunt.PuntReasonDump{})
	out := make(map[string]uint32, len(all))
	for _, d := range all {
		out[d.Reason.Name] = d.Reason.ID
	}
	return out, err
}

// catch registers the socket for a reason, or gives the registration another socket. VPP does
// not answer a request about a number that is no reason, so that is never sent.
func (h *handler) catch(ctx context.Context, v *punt.Exception) error {
	ids, err := h.reasons(ctx)
	if err != nil {
		return err
	}
	id, has := ids[v.GetReason()]
	if !has {
		return fmt.Errorf("reason %s: %w; it has %s", v.GetReason(), iface.ErrNotFound, strings.Join(slices.Sorted(maps.Keys(ids)), ", "))
	}
	return h.register(ctx, reasonOf(id), v.GetSocketPath())
}

// readExceptions returns the registrations by reason. A number without a name is left out,
// because no value could declare it.
func (h *handler) readExceptions(ctx context.Context, _ bool) ([]*punt.Exception, error) {
	all, err := h.registered(ctx, vpppunt.PUNT_API_TYPE_EXCEPTION)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	ids, err := h.reasons(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[uint32]string, len(ids))
	for name, id := range ids {
		names[id] = name
	}
	var out []*punt.Exception
	for _, d := range all {
		if name := names[d.Punt.Punt.GetException().ID]; name != "" {
			out = append(out, &punt.Exception{Reason: name, SocketPath: d.Pathname})
		}
	}
	return out, nil
}

// decimal returns a number as text.
func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
