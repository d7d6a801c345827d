package vpp

import (
	"context"
	"encoding/gob"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.fd.io/govpp/api"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/proxy"
)

// proxyConnects is how long a client of the proxy waits for a connection to VPP.
const proxyConnects = 5 * time.Second

// Proxy returns the server for GoVPP's proxy client (package proxy of GoVPP), or nil if
// govpp.conf does not enable it. A client may use the whole binary API, past the declared
// values.
//
// Each client gets a connection to VPP of its own, which ends with it, so that an unused
// proxy costs nothing and a client of a VPP that is gone connects again. Messages that
// this program does not know cannot be passed on.
func (p *Plugin) Proxy() http.Handler {
	if !p.proxied {
		return nil
	}
	for _, messages := range api.GetRegisteredMessages() {
		for _, m := range messages {
			gob.Register(m) // the protocol names types; both ends must know them
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, err := p.proxyServer(r.Context())
		if err != nil {
			http.Error(w, fmt.Sprintf("VPP proxy: %v", err), http.StatusServiceUnavailable)
			return
		}
		defer server.Close()
		p.log.Info("a client uses VPP's binary API through the proxy", "from", r.RemoteAddr)
		server.Methods().ServeHTTP(w, r) // until the client disconnects
	})
}

// proxyServer returns a server with a usable connection to VPP. The caller closes it.
func (p *Plugin) proxyServer(ctx context.Context) (*proxy.Server, error) {
	info := p.manager.Info()
	if !info.Connected {
		return nil, notConnected(info.Err)
	}
	within, cancel := context.WithTimeout(ctx, proxyConnects)
	defer cancel()
	server, noStats, err := proxy.Open(within, info.Socket, p.statsSocket)
	switch {
	case err != nil:
		return nil, fmt.Errorf("no connection to VPP within %s: %w", proxyConnects, err)
	case noStats != nil:
		p.log.Log(ctx, slog.LevelDebug, "VPP proxy without counters", "err", noStats)
	}
	return server, nil
}
