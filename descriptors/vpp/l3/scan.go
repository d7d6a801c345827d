package l3

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"

	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// scanDescriptor has VPP forget neighbours that have been silent for too long. VPP has of
// it the age alone, for each IP version; it probes a neighbour that has reached it, and
// forgets one that does not answer.
func (h handler) scanDescriptor() scheduler.Descriptor[*l3.IPScanNeighbor, struct{}] {
	return scheduler.Descriptor[*l3.IPScanNeighbor, struct{}]{
		Name:       ScanName,
		Model:      models.For[*l3.IPScanNeighbor](),
		Connection: h.Southbound,

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

func validateScan(_ string, v *l3.IPScanNeighbor) error {
	var f faults
	if l3.IPScanNeighbor_Mode_name[int32(v.GetMode())] == "" {
		f.Add("mode", int32(v.GetMode()), "DISABLED, IPV4, IPV6 or BOTH")
	}
	if most := ^uint32(0) / secondsPerMinute; v.GetStaleThreshold() > most {
		f.Add("stale_threshold", v.GetStaleThreshold(), "at most %d minutes", most)
	}
	return f.Err()
}

// ages are after how many seconds neighbours of IPv4 and of IPv6 are probed; 0: never.
type ages [2]uint32

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

var families = [2]ip_types.AddressFamily{ip_types.ADDRESS_IP4, ip_types.ADDRESS_IP6}

// lastAges are what was set last, where VPP does not tell.
type ageRecord struct {
	mu         sync.Mutex // guards what follows
	connection int        // of the connection
	ages       ages
}

// setAges leaves the other settings as they are, where VPP tells them; otherwise as they
// are in a fresh VPP.
func (h handler) setAges(ctx context.Context, to ages) error {
	for i, af := range families {
		now := &ip_neighbor.IPNeighborConfigGetReply{MaxNumber: defaultMaxNumber}
		err := h.API.Call(ctx, &ip_neighbor.IPNeighborConfigGet{Af: af}, now)
		if err != nil && !errors.Is(err, scheduler.ErrUnimplemented) {
			return err
		}
		config := &ip_neighbor.IPNeighborConfig{Af: af, MaxNumber: now.MaxNumber, MaxAge: to[i], Recycle: now.Recycle}
		if err := h.API.Call(ctx, config, &ip_neighbor.IPNeighborConfigReply{}); err != nil {
			return err
		}
	}
	h.scanAges.mu.Lock()
	defer h.scanAges.mu.Unlock()
	h.scanAges.connection, h.scanAges.ages = h.Life(), to
	return nil
}

// readAges asks VPP. Before 23.10 it does not tell: what was set on this connection counts.
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

func (h handler) lastSetAges() ages {
	h.scanAges.mu.Lock()
	defer h.scanAges.mu.Unlock()
	if h.scanAges.connection != h.Life() {
		return ages{}
	}
	return h.scanAges.ages
}

// retrieveScan finds what is declared, if VPP is set to that; or that VPP is not as a fresh
// one, though nothing is declared.
func (h handler) retrieveScan(ctx context.Context, wanted []scheduler.Desired[*l3.IPScanNeighbor]) iter.Seq2[scheduler.Found[*l3.IPScanNeighbor, struct{}], error] {
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

// scanOf is the nearest value there is.
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
