package vppsim_test

import (
	"context"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dns"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// dnsRows are about the DNS cache. A lookup with IPv6 servers alone is not among them: it kills VPP.
func dnsRows() []row {
	return []row{{"the DNS cache", func(v *vpp) {
		request := func(address string, add uint8) *dns.DNSNameServerAddDel {
			a := vppwire.Addr(addr(address))
			q := &dns.DNSNameServerAddDel{ServerAddress: make([]byte, 16), IsAdd: add}
			if copy(q.ServerAddress, a.AsSlice()); a.Is6() {
				q.IsIP6 = 1
			}
			return q
		}
		server := func(address string, add uint8, want api.VPPApiError) {
			v.Helper()
			v.call("dns_name_server_add_del", want, request(address, add), &dns.DNSNameServerAddDelReply{})
		}
		enable := func(enable uint8, want api.VPPApiError) {
			v.Helper()
			v.call("dns_enable_disable", want, &dns.DNSEnableDisable{Enable: enable}, &dns.DNSEnableDisableReply{})
		}
		enabled := func(want bool) {
			v.Helper()
			var r vlib.CliInbandReply
			v.call("cli_inband", 0, &vlib.CliInband{Cmd: "show dns cache name agent"}, &r)
			if got := !strings.Contains(r.Reply, "cache is disabled"); got != want {
				v.Errorf("the cache is enabled: %t; expected %t; VPP says %q", got, want, r.Reply)
			}
		}
		v.Cleanup(func() { // what a failed row leaves
			ctx := context.WithoutCancel(v.Context())
			_ = v.Call(ctx, &dns.DNSEnableDisable{}, &dns.DNSEnableDisableReply{}) // it may be disabled
			for _, address := range []string{"10.7.0.53", "10.7.0.54", "fd07::53"} {
				_ = v.Call(ctx, request(address, 0), &dns.DNSNameServerAddDelReply{}) // usually gone
			}
		})
		enabled(false)
		enable(0, 0)
		enable(1, api.NO_NAME_SERVERS)
		enabled(false)
		server("10.7.0.53", 0, api.NAME_SERVER_NOT_FOUND)
		server("10.7.0.53", 1, 0)
		server("10.7.0.53", 1, 0) // once
		enable(1, 0)
		enabled(true)
		enable(1, 0)
		server("10.7.0.54", 1, 0)
		server("fd07::53", 1, 0)
		server("10.7.0.53", 0, 0)
		server("10.7.0.53", 0, api.NAME_SERVER_NOT_FOUND)
		enabled(true)
		enable(0, 0)
		enabled(false)
		enable(1, 0) // the servers have stayed
		enable(0, 0)
		server("fd07::53", 0, 0)
		server("10.7.0.54", 0, 0)
		server("fd07::53", 0, api.NAME_SERVER_NOT_FOUND)
		enable(1, api.NO_NAME_SERVERS)
	}}}
}
