package punt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// A source selects the packets of a redirection.
type source struct {
	af ip_types.AddressFamily
	rx uint32 // core.None: any interface
}

func (a source) compare(b source) int {
	return cmp.Or(cmp.Compare(a.af, b.af), cmp.Compare(a.rx, b.rx))
}

type index = interface_types.InterfaceIndex

// redirects are the redirections to interfaces. VPP counts the requests of each IP version, and
// redirects packets while that count is not 0: a request that replaces a redirection counts
// too, and so does one that ends none (VPP ip4_punt_drop.c).
type redirects struct {
	vpp *core.VPP
	all map[source]ip.PuntRedirectV2
	// on can become negative. VPP redirects packets then too, although there is no redirection.
	on [2]int // by IP version
}

// newRedirects adds the messages of redirections. VPP's older version of the message is missing,
// because the agent does not use it.
func newRedirects(vpp *core.VPP) {
	r := &redirects{vpp: vpp, all: map[source]ip.PuntRedirectV2{}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.Call(r.set), core.Dump(r.dump)},
		Pages:    map[string]func() string{"show ip punt redirect": r.show},
	})
}

// set adds a redirection, replaces one, or ends one. It does not check the incoming interface.
// An index of 0 (local0) and ~0 both stand for all interfaces.
func (r *redirects) set(q *ip.AddDelIPPuntRedirectV2, _ *ip.AddDelIPPuntRedirectV2Reply) core.Errno {
	if q.Punt.Af > ip_types.ADDRESS_IP6 {
		return api.INVALID_ADDRESS_FAMILY
	}
	for _, path := range q.Punt.Paths {
		if path.SwIfIndex != core.None && r.vpp.Interface(path.SwIfIndex) == nil {
			return api.NO_MATCHING_INTERFACE
		}
	}
	at := source{q.Punt.Af, uint32(q.Punt.RxSwIfIndex)}
	if at.rx == 0 {
		at.rx = core.None
	}
	if q.IsAdd {
		r.on[at.af]++
		q.Punt.RxSwIfIndex = index(at.rx)
		r.all[at] = q.Punt
	} else {
		r.on[at.af]--
		delete(r.all, at)
	}
	return core.OK
}

// dump yields the redirection of one interface, or all of an IP version.
func (r *redirects) dump(q *ip.IPPuntRedirectV2Dump, yield func(ip.IPPuntRedirectV2Details)) {
	for _, at := range slices.SortedFunc(maps.Keys(r.all), source.compare) {
		if at.af == q.Af && (uint32(q.SwIfIndex) == core.None || uint32(q.SwIfIndex) == at.rx) {
			yield(ip.IPPuntRedirectV2Details{Punt: r.all[at]})
		}
	}
}

// show also prints the counts, so that a test notices a request too many.
func (r *redirects) show() string {
	var b strings.Builder
	for af, on := range r.on {
		if on != 0 {
			fmt.Fprintf(&b, "ip%d %d times\n", 4+2*af, on)
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(r.all), source.compare) {
		rx := "any"
		if at.rx != core.None {
			rx = r.vpp.NameOf(at.rx)
		}
		for _, path := range r.all[at].Paths {
			next := vppwire.AddrIn(path.Nh.Address, at.af == ip_types.ADDRESS_IP6)
			fmt.Fprintf(&b, "ip%d from %s via %s %s\n", 4+2*at.af, rx, next, r.vpp.NameOf(path.SwIfIndex))
		}
	}
	return b.String()
}
