package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/keyplane/keyplane/northbound/rest/internal/auth"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// maxCommand is the maximum size of a command in bytes.
const maxCommand = 64 << 10

// vppCommand runs a line of VPP's command line and answers its output as a JSON text.
func (h *handler) vppCommand(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	var c wire.Command
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommand)).Decode(&c); err != nil {
		return reply.BadRequest(fmt.Errorf(`expected {"vppclicommand": "show version"}: %w`, err))
	}
	if c.Line == "" {
		return reply.BadRequest(errors.New(`vppclicommand is required: {"vppclicommand": "show version"}`))
	}
	if h.Command == nil {
		return reply.NotFound(errNoVPP)
	}
	if err := h.mayCommand(r, c.Line); err != nil {
		return err
	}
	// Such a command can change anything in VPP, also if it fails or its answer comes too late. So the log
	// says who has sent it.
	h.Log.Info("VPP command", "command", c.Line, "from", r.RemoteAddr)
	out, err := h.Command(r.Context(), c.Line)
	if err != nil {
		return err
	}
	return reply.JSON(w, out)
}

// mayCommand refuses a line of VPP's command line. It owns VPP, reads files and shows keys. So everything may be sent on the
// agent's socket, by an administrator, and with the rights of vpp-agent 3.5. A user with the permission may look. An endpoint
// that is open to everybody does not open it: whoever wrote it there had the configuration in mind.
func (h *handler) mayCommand(r *http.Request, line string) error {
	user, known := auth.From(r.Context())
	switch {
	case h.Secrets, known && user.May(auth.Admin), known && isLook(line):
		return nil
	case !known:
		return reply.Status(http.StatusForbidden, fmt.Errorf("VPP's command line needs a user of http.conf with the permission %s or %s over TCP; %s", endpoint.VPP, auth.Admin, h.bySocket()))
	}
	return reply.Status(http.StatusForbidden, fmt.Errorf("expected \"show\" with one of %s: other commands change VPP, read files or show keys, and need a user of http.conf with the permission %s; %s",
		strings.Join(looks, ", "), auth.Admin, h.bySocket()))
}

// looks are the objects of "show" that neither show keys nor read files. VPP's commands may be shortened; these may not.
var looks = []string{
	"abf", "acl-plugin", "adj", "bfd", "bond", "bridge-domain", "buffers", "classify", "clock", "dhcp", "dns", "errors", "features",
	"flow-hash", "gre", "gtpu", "hardware-interfaces", "host-interface", "interface", "ip", "ip4", "ip6", "ip6-nd", "ipip", "l2fib", "l2patch",
	"l3xc", "lacp", "lldp", "loopback", "mode", "mpls", "nat44", "nat64", "nat66", "node", "plugins", "policer", "qos", "runtime", "span",
	"sr", "tap", "teib", "threads", "trace", "version", "vhost-user", "vmxnet3", "vrrp", "vxlan", "vxlan-gpe",
}

// isLook reports whether a line of VPP's command line only looks.
func isLook(line string) bool {
	if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return false // a line feed would begin another command
	}
	words := strings.Fields(line)
	return len(words) > 1 && words[0] == "show" && slices.Contains(looks, words[1])
}

// Commander runs a line of VPP's command line and returns its output. A VPP that is not
// connected is an error.
type Commander func(ctx context.Context, line string) (string, error)

// errNoProxy is the answer of a proxy that is disabled.
var errNoProxy = errors.New("VPP proxy not enabled: proxy-enabled in govpp.conf enables it")

// proxy passes the whole binary API of VPP to the client.
func (h *handler) proxy(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	if h.Proxy == nil {
		return reply.Status(http.StatusServiceUnavailable, errNoProxy)
	}
	h.Proxy.ServeHTTP(w, r)
	return nil
}
