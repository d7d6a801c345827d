package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

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
	// Such a command can change anything in VPP, also if it fails or its answer comes too late. So the log
	// says who has sent it.
	h.Log.Info("VPP command", "command", c.Line, "from", r.RemoteAddr)
	out, err := h.Command(r.Context(), c.Line)
	if err != nil {
		return err
	}
	return reply.JSON(w, out)
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
