package l3

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/unreported"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// scanDescriptor implements the ageing of neighbours. VPP supports only the age, per IP
// version: it probes a neighbour of that age, and deletes one that does not answer. The
// model's other fields have no effect. The value is one setting of VPP, which exists
// always. Delete restores the default.
func (h handler) scanDescriptor() scheduler.Descriptor[*l3.IPScanNeighbor, struct{}] {
	return scheduler.Descriptor[*l3.IPScanNeighbor, struct{}]{
		Name:  ScanName,
		Model: models.For[*l3.IPScanNeighbor](),

		Validate:   validateScan,
		Equivalent: func(_ string, old, new *l3.IPScanNeighbor) bool { return agesOf(old) == agesOf(new) },

		Create: func(ctx context.Context, _ string, v *l3.IPScanNeighbor) (struct{}, error) {
			return struct{}{}, h.setAges(ctx, agesOf(v))
		},
		Update: func(ctx context.Context, _ string, _, v *l3.IPScanNeighbor, _ struct{}) (struct{}, error) {
			return struct{}{}, h.setAges(ctx, agesOf(v))
		},
		Delete: func(ctx context.Context, _ string, _ *l3.IPScanNeighbor, _ struct{}) error {
			return h.setAges(ctx, ages{})
		},
		Retrieve: h.retrieveScan,
	}
}

const (
	secondsPerMinute = 60 // seconds
	defaultStale     = 4  // minutes
	defaultMaxNumber = 50000
)

// validateScan checks mode and age.
func validateScan(_ string, v *l3.IPScanNeighbor) error {
	var f faults
	if l3.IPScanNeighbor_Mode_name[int32(v.GetMode())] == "" {
		f.Add("mode", int32(v.GetMode()), "DISABLED, IPV4, IPV6 or BOTH")
	}
	return f.Err()
}

// ages are the ages in seconds at which IPv4 and IPv6 neighbours are probed; 0 means never.
type ages [2]uint32

// agesOf returns the ages that v configures.
func agesOf(v *l3.IPScanNeighbor) (out ages) {
	age := cmp.Or(v.GetStaleThreshold(), defaultStale) * secondsPerMinute
	if mode := v.GetMode(); mode == l3.IPScanNeighbor_IPV4 || mode == l3.IPScanNeighbor_BOTH {
		out[0] = age
	}
	if mode := v.GetMode(); mode == l3.IPScanNeighbor_IPV6 || mode == l3.IPScanNeighbor_BOTH {
		out[1] = age
	}
	return out
}

// families are in the order of ages.
var families = [2]ip_types.AddressFamily{ip_types.ADDRESS_IP4, ip_types.ADDRESS_IP6}

// unknownAges are those of a VPP that does not report them, and may have any. No value declares them, as its age is
// a multiple of 60.
var unknownAges = ages{^uint32(0), ^uint32(0)}

// setAges sets the ages and keeps VPP's other settings. Releases before 23.10 do not report
// those; they get VPP's defaults, and the ages are noted.
func (h handler) setAges(ctx context.Context, to ages) error {
	done := h.ages.Begin("")
	for i, af := range families {
		now := &ip_neighbor.IPNeighborConfigGetReply{MaxNumber: defaultMaxNumber}
		err := h.API.Call(ctx, &ip_neighbor.IPNeighborConfigGet{Af: af}, now)
		if err != nil && !errors.Is(err, scheduler.ErrUnimplemented) {
			return err
		}
		// The message sets all three settings at once.
		config := &ip_neighbor.IPNeighborConfig{Af: af, MaxNumber: now.MaxNumber, MaxAge: to[i], Recycle: now.Recycle}
		if err := h.API.Call(ctx, config, &ip_neighbor.IPNeighborConfigReply{}); err != nil {
			return err
		}
	}
	if to == (ages{}) {
		h.ages.Forget("")
	} else {
		done(fmt.Appendf(nil, "%d %d", to[0], to[1]))
	}
	return nil
}

// readAges reads the ages from VPP. Releases before 23.10 do not report them; then the last
// ages that this run of VPP got are returned.
func (h handler) readAges(ctx context.Context) (now ages, err error) {
	for i, af := range families {
		reply := &ip_neighbor.IPNeighborConfigGetReply{}
		err := h.API.Call(ctx, &ip_neighbor.IPNeighborConfigGet{Af: af}, reply)
		if errors.Is(err, scheduler.ErrUnimplemented) {
			return h.lastSetAges(), nil
		}
		if err != nil {
			return ages{}, err
		}
		now[i] = reply.MaxAge
	}
	return now, nil
}

// lastSetAges returns the noted ages. Without a note, VPP has its default.
func (h handler) lastSetAges() (last ages) {
	note, state := h.ages.Of("")
	if state == unreported.None {
		return ages{}
	}
	if n, _ := fmt.Sscanf(string(note), "%d %d", &last[0], &last[1]); n != len(last) {
		return unknownAges
	}
	return last
}

// retrieveScan yields the declared value if VPP's ages are equal. Without a declared value
// it yields the ages only if they differ from VPP's defaults.
func (h handler) retrieveScan(ctx context.Context, wanted []scheduler.Desired[*l3.IPScanNeighbor]) scheduler.Retrieved[*l3.IPScanNeighbor, struct{}] {
	type found = scheduler.Found[*l3.IPScanNeighbor, struct{}]
	return func(yield func(found, error) bool) {
		now, err := h.readAges(ctx)
		if err != nil {
			yield(found{}, err)
			return
		}
		for _, w := range wanted {
			if agesOf(w.Value) == now {
				yield(found{Value: proto.CloneOf(w.Value)}, nil)
				return
			}
		}
		if len(wanted) == 0 && now != (ages{}) {
			yield(found{Value: scanOf(now), OwnerUnknown: true}, nil)
		}
	}
}

// scanOf returns the value that describes the ages best: a value has one age for both IP
// versions.
func scanOf(now ages) *l3.IPScanNeighbor {
	v := &l3.IPScanNeighbor{StaleThreshold: max(now[0], now[1], secondsPerMinute) / secondsPerMinute}
	if now[0] != 0 {
		v.Mode |= l3.IPScanNeighbor_IPV4
	}
	if now[1] != 0 {
		v.Mode |= l3.IPScanNeighbor_IPV6
	}
	return v
}
