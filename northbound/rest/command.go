package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// maxCommand is the maximum size of a command in bytes.
const maxCommand = 64 << 10

// vppCommand runs a line of VPP's command line and answers its output as a JSON text.
func (h *handler) vppCommand(w http.ResponseWriter, r *http.Request, _ query) error {
	var c wire.Command
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommand)).Decode(&c); err != nil {
		return badRequest(fmt.Errorf(`expected {"vppclicommand": "show version"}: %w`, err))
	}
	if c.Line == "" {
		return badRequest(errors.New(`vppclicommand is required: {"vppclicommand": "show version"}`))
	}
	if h.Command == nil {
		return notFound(errNoVPP)
	}
	out, err := h.Command(r.Context(), c.Line)
	if err != nil {
		return err
	}
	// Such a command can change anything in VPP, so the log says who has sent it.
	h.Log.Info("VPP command", "command", c.Line, "from", r.RemoteAddr)
	return replyJSON(w, out)
}

// Commander runs a line of VPP's command line and returns its output. A VPP that is not
// connected is an error.
type Commander func(ctx context.Context, line string) (string, error)

// errNoProxy is the answer of a proxy that is disabled.
var errNoProxy = errors.New("VPP proxy not enabled: proxy-enabled in govpp.conf enables it")

// proxy passes the whole binary API of VPP to the client.
func (h *handler) proxy(w http.ResponseWriter, r *http.Request, _ query) error {
	if h.Proxy == nil {
		return statusError{http.StatusServiceUnavailable, errNoProxy}
	}
	h.Proxy.ServeHTTP(w, r)
	return nil
}
