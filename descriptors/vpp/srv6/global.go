package srv6

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"strings"

	"go.fd.io/govpp/binapi/sr"

	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/srv6"
	"github.com/keyplane/keyplane/scheduler"
)

// globalDescriptor implements the source address of the outer headers that policies add. VPP
// always has one, so Delete restores the default instead of removing it.
func (h *handler) globalDescriptor() scheduler.Descriptor[*srv6.SRv6Global, struct{}] {
	return scheduler.Descriptor[*srv6.SRv6Global, struct{}]{
		Name:  GlobalName,
		Model: models.For[*srv6.SRv6Global](),

		Validate: func(_ string, v *srv6.SRv6Global) error {
			var f faults
			if a := v.GetEncapSourceAddress(); a != "" && spelling.Canonical(a) != noSource && !unicast(a).IsValid() {
				f.Add("encap_source_address", a, `an IPv6 unicast address, such as "fd00::1", or "::" for none`)
			}
			return f.Err()
		},
		Equivalent: func(_ string, old, new *srv6.SRv6Global) bool { return sourceOf(old) == sourceOf(new) },

		Create: func(ctx context.Context, _ string, v *srv6.SRv6Global) (struct{}, error) {
			return struct{}{}, h.setSource(ctx, sourceOf(v))
		},
		Update: func(ctx context.Context, _ string, _, v *srv6.SRv6Global, _ struct{}) (struct{}, error) {
			return struct{}{}, h.setSource(ctx, sourceOf(v))
		},
		Delete: func(ctx context.Context, _ string, _ *srv6.SRv6Global, _ struct{}) error {
			return h.setSource(ctx, netip.IPv6Unspecified())
		},
		Retrieve: h.retrieveGlobal,
	}
}

// noSource is the default of the source address.
const noSource = "::"

// sourceOf returns the source address of a value. An empty field and "::" are equal: both are
// VPP's default.
func sourceOf(v *srv6.SRv6Global) netip.Addr {
	if a := unicast(v.GetEncapSourceAddress()); a.IsValid() {
		return a
	}
	return netip.IPv6Unspecified()
}

// setSource sets the source address (VPP sr_set_encap_source), also in existing policies. The
// lock keeps verbs of policies out: a policy that changes meanwhile could get some lists with
// the old address. If only the renewal fails, the scheduler retries both.
func (h *handler) setSource(ctx context.Context, source netip.Addr) error {
	h.policies.changing.Lock()
	defer h.policies.changing.Unlock()
	err := h.API.Call(ctx, &sr.SrSetEncapSource{EncapsSource: source.As16()}, &sr.SrSetEncapSourceReply{})
	if err != nil {
		return err
	}
	return h.renew(ctx)
}

// source reads the source address. Only the command line tells it. A page in an unknown format
// is an error. A default in its place would make the scheduler repair a correct address.
func (h *handler) source(ctx context.Context) (netip.Addr, error) {
	text, err := h.page(ctx, "show sr encaps source addr")
	if err != nil {
		return netip.Addr{}, err
	}
	_, address, _ := strings.Cut(text, "=")
	a, err := netip.ParseAddr(strings.TrimSpace(address))
	if err != nil {
		return a, fmt.Errorf("VPP tells the source address of segment routing as %q: %w", text, err)
	}
	return a, nil
}

// retrieveGlobal yields the source address. The default counts as none, unless it is declared.
// VPP stores no owner, so an undeclared address is reported with an unknown one.
func (h *handler) retrieveGlobal(ctx context.Context, wanted []scheduler.Desired[*srv6.SRv6Global]) iter.Seq2[scheduler.Found[*srv6.SRv6Global, struct{}], error] {
	return func(yield func(scheduler.Found[*srv6.SRv6Global, struct{}], error) bool) {
		source, err := h.source(ctx)
		found := scheduler.Found[*srv6.SRv6Global, struct{}]{
			Value: &srv6.SRv6Global{EncapSourceAddress: source.String()}, OwnerUnknown: len(wanted) == 0,
		}
		isDeclared := len(wanted) > 0 && sourceOf(wanted[0].Value) == source
		if err != nil || isDeclared || !source.IsUnspecified() {
			yield(found, err)
		}
	}
}
