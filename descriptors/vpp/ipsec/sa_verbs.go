package ipsec

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"go.fd.io/govpp/api"
	vppipsec "go.fd.io/govpp/binapi/ipsec"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/scheduler"
)

// all is the number that dumps take for all (~0).
const all = ^uint32(0)

// createAssociation makes an association (VPP ipsec_sad_entry_add). If its number is taken, an
// earlier request made it whose answer was lost, or somebody else.
func (h *handler) createAssociation(ctx context.Context, _ string, v *ipsec.SecurityAssociation) (Meta, error) {
	step := addAssociation(v)
	err := h.API.Call(ctx, step.Request, step.Reply)
	return metaOf(v), h.created(ctx, v, err)
}

// createAssociations is createAssociation for many values, without waiting for each reply.
func (h *handler) createAssociations(ctx context.Context, values []scheduler.Desired[*ipsec.SecurityAssociation]) []scheduler.Created[Meta] {
	steps, out := make([]*conn.Step, len(values)), make([]scheduler.Created[Meta], len(values))
	for i, w := range values {
		steps[i] = addAssociation(w.Value)
	}
	_ = h.API.Batch(ctx, steps...) // each step has its own
	for i, w := range values {
		out[i] = scheduler.Created[Meta]{Meta: metaOf(w.Value), Err: h.created(ctx, w.Value, steps[i].Err)}
	}
	return out
}

// metaOf returns the metadata of a value.
func metaOf(v *ipsec.SecurityAssociation) Meta { return Meta{Tunnel: associationOf(v).isTunnel()} }

// addAssociation returns the request that makes an association.
func addAssociation(v *ipsec.SecurityAssociation) *conn.Step {
	return conn.Ask(&vppipsec.IpsecSadEntryAdd{Entry: associationOf(v).entry(v.GetIndex())}, &vppipsec.IpsecSadEntryAddReply{})
}

// created handles the result of a request to make an association. One with the same number is
// taken over if it is the same, and replaced otherwise.
func (h *handler) created(ctx context.Context, v *ipsec.SecurityAssociation, err error) error {
	if errors.Is(err, api.UNIMPLEMENTED) {
		return uncombined(v)
	}
	if !errors.Is(err, api.ENTRY_ALREADY_EXISTS) {
		return err
	}
	existing, err := conn.Dump[vppipsec.IpsecSaV3Details](ctx, h.API, &vppipsec.IpsecSaV3Dump{SaID: v.GetIndex()})
	if err != nil {
		return err
	}
	for _, d := range existing { // VPP lists all, whichever it is asked for
		if d.Entry.SadID == v.GetIndex() && associationOf(valueOf(d.Entry)) == associationOf(v) {
			return nil
		}
	}
	if err := h.remove(ctx, v.GetIndex()); err != nil {
		return err
	}
	step := addAssociation(v)
	return h.API.Call(ctx, step.Request, step.Reply)
}

// uncombined is the error of algorithms that this release of VPP does not have together. Which ones differs
// between releases, so VPP is asked.
func uncombined(v *ipsec.SecurityAssociation) error {
	field := &models.FieldError{Field: "crypto_alg", Value: v.GetCryptoAlg().String(), Expected: "an algorithm that this VPP has"}
	if integ := v.GetIntegAlg(); integ != ipsec.IntegAlg_NONE_INTEG {
		field = &models.FieldError{Field: "integ_alg", Value: integ.String(), Expected: fmt.Sprintf("an algorithm that this VPP has together with %s", v.GetCryptoAlg())}
	}
	return fmt.Errorf("%w: %w", scheduler.ErrInvalid, field)
}

// deleteAssociation deletes an association, or returns ErrInUse. The scheduler deletes declared
// users first, so only foreign ones cause that error.
func (h *handler) deleteAssociation(ctx context.Context, _ string, v *ipsec.SecurityAssociation, _ Meta) error {
	return h.remove(ctx, v.GetIndex())
}

// remove deletes an association that nobody uses. VPP keeps one while somebody holds it, and
// requests that VPP has refused keep holds of nobody. So it is deleted until it is gone.
func (h *handler) remove(ctx context.Context, number uint32) error {
	users, err := h.users.get(ctx, h.readUsers)
	if err != nil {
		return err
	}
	if user := users[number]; user != "" {
		return fmt.Errorf("%s %w: %s", nameOf(number), ErrInUse, user)
	}
	request := &vppipsec.IpsecSadEntryDel{ID: number}
	for {
		// Two at once: the second one tells that the association is gone.
		first, second := conn.Ask(request, &vppipsec.IpsecSadEntryDelReply{}), conn.Ask(request, &vppipsec.IpsecSadEntryDelReply{})
		err := h.API.Batch(ctx, first, second)
		switch {
		case errors.Is(first.Err, api.NO_SUCH_ENTRY) || first.Err == nil && errors.Is(second.Err, api.NO_SUCH_ENTRY):
			return nil
		case err != nil:
			return err
		}
	}
}

// readUsers returns the policies and protections in VPP that use associations, as text by the
// number of the association. In the dump of VPP, only policies of action PROTECT hold theirs.
func (h *handler) readUsers(ctx context.Context) (map[uint32]string, error) {
	out := map[uint32]string{}
	protections, err := conn.Dump[vppipsec.IpsecTunnelProtectDetails](ctx, h.API, &vppipsec.IpsecTunnelProtectDump{SwIfIndex: ifindex.All})
	if err != nil {
		return nil, err
	}
	for _, d := range protections {
		for _, number := range append(d.Tun.SaIn, d.Tun.SaOut) {
			out[number] = fmt.Sprint("it protects the tunnel with sw_if_index ", d.Tun.SwIfIndex)
		}
	}
	policies, err := h.readEntries(ctx)
	for _, e := range policies {
		if e.Policy == protect {
			out[e.SaID] = fmt.Sprint("a policy of database ", e.SpdID, " protects with it")
		}
	}
	return out, err
}

// details are what VPP tells of an association besides its value, with the names of vpp-agent 3.5.
// The salt is not there, which is a secret.
type details struct {
	ID             uint32 `json:"SaID"`
	Interface      uint32 `json:"IfIdx"`
	CryptoKey      uint8  `json:"CryptoKeyLen"` // bytes
	IntegKey       uint8  `json:"IntegKeyLen"`
	SeqOutbound    uint64
	LastSeqInbound uint64
	ReplayWindow   uint64
}

// detailsOf returns the details of an association.
func detailsOf(d vppipsec.IpsecSaV3Details) *details {
	return &details{
		ID: d.Entry.SadID, Interface: uint32(d.SwIfIndex), CryptoKey: d.Entry.CryptoKey.Length, IntegKey: d.Entry.IntegrityKey.Length,
		SeqOutbound: d.SeqOutbound, LastSeqInbound: d.LastSeqInbound, ReplayWindow: d.ReplayWindow,
	}
}

type foundAssociation = scheduler.Found[*ipsec.SecurityAssociation, Meta]

// retrieveAssociations yields all associations. VPP has no room for their owner.
func (h *handler) retrieveAssociations(ctx context.Context, wanted []scheduler.Desired[*ipsec.SecurityAssociation]) iter.Seq2[foundAssociation, error] {
	return func(yield func(foundAssociation, error) bool) {
		// This message is the same in all releases; newer ones only add fields that values lack.
		existing, err := conn.Dump[vppipsec.IpsecSaV3Details](ctx, h.API, &vppipsec.IpsecSaV3Dump{SaID: all})
		if err != nil {
			yield(foundAssociation{}, err)
			return
		}
		declared := make(map[uint32]scheduler.Desired[*ipsec.SecurityAssociation], len(wanted))
		for _, w := range wanted {
			declared[w.Value.GetIndex()] = w
		}
		for _, d := range existing {
			v := valueOf(d.Entry)
			w, ours := declared[v.GetIndex()]
			one := foundAssociation{Key: w.Key, Value: v, Meta: metaOf(v), OwnerUnknown: !ours, Details: detailsOf(d)}
			if ours && associationOf(v) == associationOf(w.Value) {
				one.Value = w.Value
			}
			if !yield(one, nil) {
				return
			}
		}
	}
}
