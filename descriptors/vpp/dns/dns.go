// Package dns implements VPP's DNS cache: VPP answers DNS requests of its clients, and asks
// upstream servers for names that it does not know.
//
//	err := dns.Register(s, dns.Options{API: manager, Memory: settings, Connection: "vpp"})
//
// VPP reports neither its servers nor whether the cache is enabled by a message:
//
//	state              | source
//	enabled            | VPP's command line: "show dns cache"
//	upstream servers   | the agent's record of the servers that it has set
//
// "show dns servers" is no source for servers. It reads IPv6 servers from the memory of the
// IPv4 servers (VPP 22.02 to 26.06, dns.c), and VPP dies if there are none.
//
// VPP does not check servers either. It takes IPv6 servers alone, and dies at the first name
// that a client asks for (25.10, vnet_send_dns_request). So Validate demands an IPv4 server,
// and servers are added before others are removed.
//
// Tests run against a simulated VPP, which is itself tested against a real one.
package dns

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	vppdns "go.fd.io/govpp/binapi/dns"
	"go.fd.io/govpp/binapi/vlib"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/dns"
	"github.com/keyplane/keyplane/scheduler"
)

// Name is the name of the descriptor, as logs, REST and RetrieveAfter use it.
const Name = "vpp-dns-cache"

// Options configure the descriptor. API and Connection are required.
type Options struct {
	API conn.API
	// Memory keeps the record of servers across restarts of the agent. Defaults to none:
	// then the declared servers are added again after a restart of the agent, and servers
	// that were removed from the declaration meanwhile stay in VPP.
	Memory     scheduler.Memory
	Connection string
	Log        *slog.Logger // Defaults to slog.Default.
}

type handler struct {
	Options
	record *record
}

// Register adds the descriptor to s.
func Register(s *scheduler.Scheduler, o Options) error {
	_, err := scheduler.Register(s.OnConnection(o.Connection), newHandler(o).descriptor())
	return err
}

// newHandler returns a handler that knows the servers of an earlier run of the agent.
func newHandler(o Options) handler { return handler{o, newRecord(o.Memory, o.Log)} }

func (h handler) descriptor() scheduler.Descriptor[*dns.DNSCache, struct{}] {
	return scheduler.Descriptor[*dns.DNSCache, struct{}]{
		Name:  Name,
		Model: models.For[*dns.DNSCache](),

		Normalize:  normalize,
		Validate:   validate,
		Equivalent: func(_ string, old, new *dns.DNSCache) bool { return slices.Equal(serversOf(old), serversOf(new)) },

		Create: func(ctx context.Context, _ string, v *dns.DNSCache) (struct{}, error) {
			return struct{}{}, h.apply(ctx, serversOf(v))
		},
		Update: func(ctx context.Context, _ string, _, v *dns.DNSCache, _ struct{}) (struct{}, error) {
			return struct{}{}, h.apply(ctx, serversOf(v))
		},
		Delete:   h.delete,
		Retrieve: h.retrieve,
	}
}

// normalize removes prefix lengths from addresses.
func normalize(_ string, v *dns.DNSCache) (*dns.DNSCache, []string) {
	if !slices.ContainsFunc(v.GetUpstreamDnsServers(), spelling.HasLength) {
		return v, nil
	}
	v = proto.CloneOf(v)
	var warnings []string
	for i := range v.GetUpstreamDnsServers() {
		warnings = append(warnings, spelling.Host(fmt.Sprintf("upstream_dns_servers[%d]", i), &v.UpstreamDnsServers[i])...)
	}
	return v, warnings
}

// validate demands a server with an IPv4 address.
func validate(_ string, v *dns.DNSCache) error {
	var f models.Faults
	hasIPv4 := false
	for i, text := range v.GetUpstreamDnsServers() {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" || a.IsUnspecified() {
			f.Add(fmt.Sprintf("upstream_dns_servers[%d]", i), text, `the address of a server, such as "10.0.0.53" or "fd00::53"`)
		}
		hasIPv4 = hasIPv4 || a.Is4()
	}
	switch {
	case len(v.GetUpstreamDnsServers()) == 0:
		f.Add("upstream_dns_servers", nil, "at least one server")
	case !hasIPv4 && f.Err() == nil:
		f.Add("upstream_dns_servers", strings.Join(v.GetUpstreamDnsServers(), ", "),
			"at least one IPv4 server: with IPv6 servers alone, VPP dies at the first name that a client asks for")
	}
	return f.Err()
}

// serversOf returns the servers of a value in a fixed order, each once.
func serversOf(v *dns.DNSCache) []netip.Addr {
	var out []netip.Addr
	for _, text := range v.GetUpstreamDnsServers() {
		if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// apply sets these servers and enables the cache. New servers are added before others go.
// Servers that others have added are unknown, and stay.
func (h handler) apply(ctx context.Context, servers []netip.Addr) error {
	was := h.record.servers()
	h.record.set(append(slices.Clone(was), servers...)) // VPP may get any of them, also if the answer is lost
	for _, a := range servers {
		if err := h.setServer(ctx, a, true); err != nil {
			return err
		}
	}
	if err := h.API.Call(ctx, &vppdns.DNSEnableDisable{Enable: 1}, &vppdns.DNSEnableDisableReply{}); err != nil {
		return err
	}
	if err := h.removeServers(ctx, lists.Without(was, servers)); err != nil {
		return err
	}
	h.record.set(servers)
	return nil
}

// delete disables the cache and removes its servers. Disabling comes first: without a server,
// VPP would die at the next lookup.
func (h handler) delete(ctx context.Context, _ string, v *dns.DNSCache, _ struct{}) error {
	if err := h.API.Call(ctx, &vppdns.DNSEnableDisable{}, &vppdns.DNSEnableDisableReply{}); err != nil {
		return err
	}
	all := append(serversOf(v), lists.Without(h.record.servers(), serversOf(v))...)
	if err := h.removeServers(ctx, all); err != nil {
		return err
	}
	h.record.set(nil)
	return nil
}

// removeServers removes servers, those that somebody else has removed too.
func (h handler) removeServers(ctx context.Context, servers []netip.Addr) error {
	for _, a := range servers {
		if err := h.setServer(ctx, a, false); err != nil && !errors.Is(err, api.NAME_SERVER_NOT_FOUND) {
			return err
		}
	}
	return nil
}

// setServer adds a server, or removes one. VPP ignores a server that it has already.
func (h handler) setServer(ctx context.Context, a netip.Addr, add bool) error {
	request := &vppdns.DNSNameServerAddDel{ServerAddress: make([]byte, 16)}
	copy(request.ServerAddress, a.AsSlice())
	if a.Is6() {
		request.IsIP6 = 1
	}
	if add {
		request.IsAdd = 1
	}
	return h.API.Call(ctx, request, &vppdns.DNSNameServerAddDelReply{})
}

// retrieve yields the cache if it is enabled, with the servers on record. A cache that the
// agent has not enabled has none there, so the declared servers are added.
func (h handler) retrieve(ctx context.Context, wanted []scheduler.Desired[*dns.DNSCache]) iter.Seq2[scheduler.Found[*dns.DNSCache, struct{}], error] {
	type found = scheduler.Found[*dns.DNSCache, struct{}]
	return func(yield func(found, error) bool) {
		enabled, err := h.enabled(ctx)
		switch {
		case err != nil:
			yield(found{}, err)
		case enabled:
			v := &dns.DNSCache{}
			for _, a := range h.record.servers() {
				v.UpstreamDnsServers = append(v.UpstreamDnsServers, a.String())
			}
			yield(found{Value: v, OwnerUnknown: len(wanted) == 0}, nil)
		}
	}
}

// enabled asks VPP's command line for a name that is not in the cache, because VPP would list
// the whole cache otherwise. A VPP without the plugin has no cache.
func (h handler) enabled(ctx context.Context) (bool, error) {
	if !h.API.Has(&vppdns.DNSEnableDisable{}) {
		return false, nil
	}
	reply := &vlib.CliInbandReply{}
	if err := h.API.Call(ctx, &vlib.CliInband{Cmd: "show dns cache name agent"}, reply); err != nil {
		return false, err
	}
	return !strings.Contains(reply.Reply, "cache is disabled"), nil
}
