package vppsim_test

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip6_nd"
	"go.fd.io/govpp/binapi/rd_cp"

	"github.com/keyplane/keyplane/internal/testkit"
)

// autoconf has an interface take addresses from router advertisements, or end that.
func (v *vpp) autoconf(i index, on bool, want api.VPPApiError) {
	v.Helper()
	v.call("ip6_nd_address_autoconfig", want, &rd_cp.IP6NdAddressAutoconfig{SwIfIndex: i, Enable: on}, &rd_cp.IP6NdAddressAutoconfigReply{})
}

func (v *vpp) solicit(i index, want api.VPPApiError) {
	v.Helper()
	q := &ip6_nd.IP6ndSendRouterSolicitation{SwIfIndex: i, Irt: 1, Mrt: 120}
	v.call("ip6nd_send_router_solicitation", want, q, &ip6_nd.IP6ndSendRouterSolicitationReply{})
}

// advertised makes an interface on whose link a router advertises the network fd0<n>::/64. In a real
// VPP, the link is a pair of memifs, and the router the other one of them.
func (v *vpp) advertised(n int) index {
	v.Helper()
	if v.sim != nil {
		i, tag := v.loop(), fmt.Sprint("link", n)
		v.call("tag", 0, &vppif.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: i, Tag: tag}, &vppif.SwInterfaceTagAddDelReply{})
		if err := v.sim.Advertise(tag, netip.MustParsePrefix(fmt.Sprintf("fd0%d::/64", n))); err != nil {
			v.Fatal(err)
		}
		return i
	}
	router, host := fmt.Sprintf("memif%d/1", n), fmt.Sprintf("memif1%d/1", n)
	socket := filepath.Join(filepath.Dir(v.socket), fmt.Sprint("m", n))
	for _, line := range []string{
		fmt.Sprintf("create memif socket id %d filename %s", n, socket),
		fmt.Sprintf("create memif socket id 1%d filename %s", n, socket),
		fmt.Sprintf("create interface memif socket-id %d id 1 master", n),
		fmt.Sprintf("create interface memif socket-id 1%d id 1 slave", n),
		fmt.Sprint("ip6 table add ", n), fmt.Sprint("set interface ip6 table ", router, " ", n),
		"set interface state " + router + " up", "set interface state " + host + " up",
		fmt.Sprintf("set interface ip address %s fd0%d::1/64", router, n),
		"ip6 nd " + router + " ra-interval 1800 1000", // only to those who ask
		fmt.Sprintf("ip6 nd %s prefix fd0%d::/64 infinite", router, n),
	} {
		v.command(line)
	}
	for _, d := range dump[vppif.SwInterfaceDetails](v, &vppif.SwInterfaceDump{SwIfIndex: none}) {
		if d.InterfaceName == host {
			return d.SwIfIndex
		}
	}
	v.Fatal("there is no memif")
	return none
}

// awaitNetwork waits until an interface has an address of a network.
func (v *vpp) awaitNetwork(i index, network string) {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.Context(), testkit.Patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(strings.Join(v.addresses(i, true), " "), network) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			v.Fatalf("interface %d has no address of %s, but %v", i, network, v.addresses(i, true))
		}
	}
}

func autoconfRows() []row {
	return []row{
		{"routers are solicited", func(v *vpp) {
			i := v.loop()
			v.solicit(i, 0) // IPv6 is not enabled on it
			v.autoconf(i, true, 0)
			v.solicit(i, 0)
			v.autoconf(i, false, 0)
			v.autoconf(i, false, 0)
			v.autoconf(unknown, true, api.INVALID_SW_IF_INDEX)
			v.solicit(unknown, api.INVALID_SW_IF_INDEX)
		}},
		{"an interface stops to configure itself", func(v *vpp) {
			testkit.Need(v, "a VPP of its own, in which memifs stay", v.fresh)
			a, b := v.advertised(1), v.advertised(2)
			v.autoconf(a, true, 0)
			v.autoconf(b, true, 0)
			v.awaitNetwork(a, "fd01::")
			v.awaitNetwork(b, "fd02::")
			v.autoconf(b, false, 0) // and VPP takes the addresses of all
			if of, others := v.addresses(b, true), v.addresses(a, true); len(of)+len(others) > 0 {
				v.Errorf("it has %v, and the other %v", of, others)
			}
			v.solicit(a, 0)
			v.awaitNetwork(a, "fd01::")
			if of := v.addresses(b, true); len(of) > 0 {
				v.Errorf("it has %v", of)
			}
		}},
	}
}
