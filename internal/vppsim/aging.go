package vppsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
)

// An aging is when VPP forgets neighbours of an IP version.
type aging struct {
	number, age uint32
	recycle     bool
}

func freshAgings() [2]aging { return [2]aging{{number: 50000}, {number: 50000}} }

func agingMessages() []entry {
	return []entry{
		call(func(w *world, q *ip_neighbor.IPNeighborConfig, _ *ip_neighbor.IPNeighborConfigReply) errno {
			if q.Af > ip_types.ADDRESS_IP6 {
				return api.INVALID_ADDRESS_FAMILY
			}
			w.agings[q.Af] = aging{q.MaxNumber, q.MaxAge, q.Recycle}
			return ok
		}),
		call(func(w *world, q *ip_neighbor.IPNeighborConfigGet, r *ip_neighbor.IPNeighborConfigGetReply) errno {
			if q.Af > ip_types.ADDRESS_IP6 {
				return api.INVALID_ADDRESS_FAMILY
			}
			a := w.agings[q.Af]
			r.Af, r.MaxNumber, r.MaxAge, r.Recycle = q.Af, a.number, a.age, a.recycle
			return ok
		}),
		call(flushNeighbours),
	}
}

// flushNeighbours lets go static ones too.
func flushNeighbours(w *world, q *ip_neighbor.IPNeighborFlush, _ *ip_neighbor.IPNeighborFlushReply) errno {
	if _, errno := w.at(q.SwIfIndex); errno != ok && uint32(q.SwIfIndex) != none {
		return errno
	}
	maps.DeleteFunc(w.neighbours, func(key neighbourKey, n ip_neighbor.IPNeighbor) bool {
		return n.IPAddress.Af == q.Af && (uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == key.index)
	})
	return ok
}

func (w *world) showAgings() string {
	out := ""
	for i, name := range []string{"ip4", "ip6"} {
		out += fmt.Sprintf("%s limit %d age %d recycle %t\n", name, w.agings[i].number, w.agings[i].age, w.agings[i].recycle)
	}
	return out
}

func (w *world) showNeighbours() string {
	var lines []string
	for key, n := range w.neighbours {
		static := n.Flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC != 0
		lines = append(lines, fmt.Sprintf("%s %s %s static %t\n", w.nameOf(key.index), key.address, n.MacAddress, static))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
