// Package dns simulates VPP's plugin for the DNS cache. It keeps servers and whether the
// cache is enabled; it resolves no names. Like the real one, it reports its servers by no
// message, and whether it is enabled on the command line only.
package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dns"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

type plugin struct {
	enabled bool
	servers [2][]netip.Addr // IPv4 and IPv6, in the order of addition
}

// New adds the plugin.
func New(vpp *core.VPP) {
	p := &plugin{}
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.Call(p.enable), core.Call(p.set)},
		Pages: map[string]func() string{
			"show dns": p.show, // of this simulation only
			// The same text as VPP's, which the agent reads. The cache is always empty.
			"show dns cache name agent": p.cache,
		},
	})
}

// enable needs a server of either IP version. VPP also enables a cache with IPv6 servers only,
// and dies at its first lookup.
func (p *plugin) enable(q *dns.DNSEnableDisable, _ *dns.DNSEnableDisableReply) core.Errno {
	if q.Enable != 0 && len(p.servers[0])+len(p.servers[1]) == 0 {
		return api.NO_NAME_SERVERS
	}
	p.enabled = q.Enable != 0
	return core.OK
}

// set adds a server, unless the cache has it, or removes one. The address field has 16 bytes, of
// which IPv4 uses the first 4. A server that VPP has already is no error.
func (p *plugin) set(q *dns.DNSNameServerAddDel, _ *dns.DNSNameServerAddDelReply) core.Errno {
	of, size := &p.servers[0], 4
	if q.IsIP6 != 0 {
		of, size = &p.servers[1], 16
	}
	address, _ := netip.AddrFromSlice(q.ServerAddress[:size])
	at := slices.Index(*of, address)
	switch {
	case q.IsAdd != 0 && at < 0:
		*of = append(*of, address)
	case q.IsAdd == 0 && at < 0:
		return api.NAME_SERVER_NOT_FOUND
	case q.IsAdd == 0:
		*of = slices.Delete(*of, at, at+1)
	}
	return core.OK
}

// cache is VPP's page (src/plugins/dns/dns.c, format_dns_cache). The name in the command does
// not matter, because an empty cache has none.
func (p *plugin) cache() string {
	if !p.enabled {
		return "The DNS cache is disabled...\n"
	}
	return "The DNS cache is empty...\n"
}

// show sorts the servers, because their order has no effect here.
func (p *plugin) show() string {
	var b strings.Builder
	fmt.Fprintf(&b, "enabled %t\n", p.enabled)
	for _, address := range slices.SortedFunc(slices.Values(slices.Concat(p.servers[0], p.servers[1])), netip.Addr.Compare) {
		fmt.Fprintf(&b, "server %s\n", address)
	}
	return b.String()
}
