package l3

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// ErrOutranked reports that VPP accepts a route and does not forward by it, since it has a route of
// its own to the same network. The scheduler tries again: that route may go with its address.
var ErrOutranked = errors.New("VPP has a route of its own to this network, which takes precedence")

// unbeatable returns the routes that each table has, and that no other route takes precedence
// over (VPP FIB_SOURCE_SPECIAL). The default routes and those to 0.0.0.0/32 and 255.255.255.255/32
// are none of them.
func unbeatable() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("fe80::/10")}
}

// mayBeOutranked tells whether VPP may have a route of its own to a network. Only for these few it
// is asked by which one it forwards: an answer for each route would double the messages.
func (h handler) mayBeOutranked(dst netip.Prefix) bool {
	return h.Interfaces.Connected(dst) || slices.Contains(unbeatable(), dst)
}

// verifyEffect checks after a creation that VPP forwards by the path. Otherwise it is removed: it
// would come into effect unnoticed when VPP's own route goes.
func (h handler) verifyEffect(ctx context.Context, v *l3.Route, by uint32) error {
	v = h.withoutReferences(v)
	dst, err := netip.ParsePrefix(v.GetDstNetwork())
	if err != nil || !h.mayBeOutranked(dst) {
		return nil //nolint:nilerr // a creation with such a destination has failed before
	}
	in, its, err := h.isInEffect(ctx, v, dst, by)
	if err != nil || in {
		return err
	}
	err = fmt.Errorf("%w: %s", ErrOutranked, its)
	if slices.Contains(unbeatable(), dst) {
		var f faults
		f.Add("dst_network", v.GetDstNetwork(), "another network, as each table of VPP has a route to this one (%s) that takes precedence", its)
		err = errors.Join(scheduler.ErrInvalid, f.Err())
	}
	return errors.Join(err, h.changeRoute(ctx, v, by, false))
}

// isInEffect tells whether VPP forwards by the path of v, whoever made it. Otherwise it describes the
// route that takes precedence.
func (h handler) isInEffect(ctx context.Context, v *l3.Route, dst netip.Prefix, by uint32) (in bool, its string, err error) {
	var has ip.IPRouteLookupV2Reply
	err = h.API.Call(ctx, &ip.IPRouteLookupV2{TableID: v.GetVrfId(), Exact: 1, Prefix: vppwire.Prefix(dst)}, &has)
	if errors.Is(err, api.NO_SUCH_ENTRY) {
		return false, "it has gone", nil
	}
	if err != nil || len(has.Route.Paths) == 0 {
		return false, "", err
	}
	if slices.ContainsFunc(has.Route.Paths, func(p fib_types.FibPath) bool { return isSamePath(p, v, by) }) {
		return true, "", nil
	}
	return false, h.describe(&has.Route.Paths[0]), nil
}

// describe says for people what the path of a route of VPP's own does.
func (h handler) describe(p *fib_types.FibPath) string {
	name := h.namesByIndex()[p.SwIfIndex]
	switch {
	case p.Type == fib_types.FIB_API_PATH_TYPE_DROP:
		return "it drops"
	case p.Type == fib_types.FIB_API_PATH_TYPE_LOCAL:
		return "VPP itself has the address, on " + name
	case name != "":
		return name + " has an address in it"
	}
	return "it is for link-local addresses"
}

// outranked yields the declared routes that VPP forwards by, though not for us: it has a route of its
// own with the same path, so a dump of the routes that came over the API lacks them.
func (h handler) outranked(ctx context.Context, known declaredIndex, yield func(scheduler.Found[*l3.Route, struct{}], error) bool) {
	for at, by := range known.unseen {
		w := known.desired[at]
		v := h.withoutReferences(w.Value)
		dst, err := netip.ParsePrefix(v.GetDstNetwork())
		if err != nil {
			continue
		}
		in, _, err := h.isInEffect(ctx, v, dst, by)
		switch {
		case errors.Is(err, api.NO_SUCH_FIB): // without its table it is not there
		case err != nil:
			yield(scheduler.Found[*l3.Route, struct{}]{}, err)
			return
		case in:
			if !yield(scheduler.Found[*l3.Route, struct{}]{Key: w.Key, Value: w.Value}, nil) {
				return
			}
		}
	}
}
