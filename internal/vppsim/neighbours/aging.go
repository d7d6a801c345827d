package neighbours

import (
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// An aging limits the neighbours of one IP version by number and by age in seconds; 0:
// without limit. No traffic flows here, so no neighbour ages.
type aging struct {
	number, age uint32
	recycle     bool // the oldest neighbour makes room for a new one
}

// defaultAgings returns VPP's defaults for IPv4 and IPv6.
func defaultAgings() [2]aging { return [2]aging{{number: 50000}, {number: 50000}} }

// agingMessages registers the messages about the age of neighbours.
func (p *plugin) agingMessages() {
	p.vpp.Register(core.Plugin{
		Messages: []core.Message{core.Call(p.setAging), core.Call(p.getAging)},
		Pages:    map[string]func() string{"show ip neighbor-config": p.showAgings},
	})
}

// setAging refuses an unknown family, as VPP does.
func (p *plugin) setAging(q *ip_neighbor.IPNeighborConfig, _ *ip_neighbor.IPNeighborConfigReply) core.Errno {
	if q.Af > ip_types.ADDRESS_IP6 {
		return api.INVALID_ADDRESS_FAMILY
	}
	p.agings[q.Af] = aging{q.MaxNumber, q.MaxAge, q.Recycle}
	return core.OK
}

// getAging is a message that releases before 23.10 do not have.
func (p *plugin) getAging(q *ip_neighbor.IPNeighborConfigGet, r *ip_neighbor.IPNeighborConfigGetReply) core.Errno {
	if q.Af > ip_types.ADDRESS_IP6 {
		return api.INVALID_ADDRESS_FAMILY
	}
	a := p.agings[q.Af]
	r.Af, r.MaxNumber, r.MaxAge, r.Recycle = q.Af, a.number, a.age, a.recycle
	return core.OK
}

// showAgings prints the settings of both IP versions.
func (p *plugin) showAgings() string {
	var out strings.Builder
	for i, name := range []string{"ip4", "ip6"} {
		fmt.Fprintf(&out, "%s limit %d age %d recycle %t\n", name, p.agings[i].number, p.agings[i].age, p.agings[i].recycle)
	}
	return out.String()
}
