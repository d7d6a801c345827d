package rest

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ours lets only requests through that are for this agent by its Host header: for
// an address, localhost, the host of the endpoint, or an allowed name. A page of
// another site can make a browser believe that a name of that site is this
// address, and then read what it answers; but it cannot do so with an address.
func (c *Config) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		if !c.allows(host) {
			fail(w, statusError{http.StatusForbidden, fmt.Errorf("the request is for the host %q: expected localhost, an address, or a name that allowed-hosts of http.conf has", host)})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (c *Config) allows(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	return strings.EqualFold(host, hostOf(c.Endpoint)) ||
		slices.ContainsFunc(c.AllowedHosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// hostOf is the part before the port, if there is one.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.TrimSuffix(host, ".")
}
