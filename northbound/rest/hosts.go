package rest

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
)

// checkHost refuses requests with a foreign Host header. Allowed are addresses,
// localhost, the host of the endpoint, and allowed-hosts. This prevents DNS
// rebinding: a page of another site can make a browser resolve a name of that site
// to this address and read the answers. It cannot do so with an address. An endpoint of all addresses
// without users gives everybody as much anyway, and its clients know the host by any name.
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
	if c.Older || c.everywhere() && len(c.AllowedHosts) == 0 && !c.users().Enabled() {
		return true
	}
	return strings.EqualFold(host, hostOf(c.Endpoint)) ||
		slices.ContainsFunc(c.AllowedHosts, func(name string) bool { return strings.EqualFold(name, host) })
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
