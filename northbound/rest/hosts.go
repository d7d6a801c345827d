package rest

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
)

// checkHost refuses requests with a foreign Host header. Allowed are addresses,
// localhost, the host of the endpoint, and allowed-hosts. This prevents DNS
// rebinding: a page of another site can make a browser resolve a name of that site
// to this address and read the answers. It cannot do so with an address, nor with a name that nobody
// can register. So an endpoint of all addresses without users and without allowed-hosts has all names
// of the latter kind: its clients know this host by names such as "vpp-agent" or "vpp-agent.default.svc".
func (c *Config) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		if !c.allows(host) {
			reply.Fail(w, reply.Status(http.StatusForbidden, fmt.Errorf("the request is for the host %q: expected localhost, an address, or a name in allowed-hosts of http.conf", host)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allows reports whether requests may name this host. Clients without a Host header
// are no browsers.
func (c *Config) allows(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	if c.Older || c.everywhere() && len(c.AllowedHosts) == 0 && !c.users().Enabled() && isLocal(host) {
		return true
	}
	return strings.EqualFold(host, hostOf(c.Endpoint)) ||
		slices.ContainsFunc(c.AllowedHosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// isLocal reports whether a name is in no domain that people can register: it has no dot, is that of this machine, or
// is in a domain for local use (RFC 6762, RFC 8375, ICANN's "internal", Kubernetes' "svc").
func isLocal(host string) bool {
	own, err := os.Hostname()
	if !strings.Contains(host, ".") || err == nil && strings.EqualFold(host, own) {
		return true
	}
	return slices.ContainsFunc([]string{".local", ".internal", ".svc", ".home.arpa"}, func(domain string) bool {
		return strings.HasSuffix(strings.ToLower(host), domain)
	})
}

// everywhere reports whether the endpoint has all addresses of this host.
func (c *Config) everywhere() bool {
	host := hostOf(c.Endpoint)
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}

// hostOf returns the host part of host:port. The port is optional.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.TrimSuffix(host, ".")
}
