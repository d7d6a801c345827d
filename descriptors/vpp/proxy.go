package vpp

import (
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/rpc"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/proxy"

	"github.com/keyplane/keyplane/internal/backoff"
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
	proxy.SetLogOutput(io.Discard) // it logs to the standard error, and each error goes to the client too
	for _, messages := range api.GetRegisteredMessages() {
		for _, m := range messages {
			gob.Register(m) // the protocol names types; both ends must know them
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, end, err := p.proxyServer(r.Context())
		if err != nil {
			http.Error(w, fmt.Sprintf("VPP proxy: %v", err), http.StatusServiceUnavailable)
			return
		}
		defer end()
		p.log.Info("a client uses VPP's binary API through the proxy", "from", r.RemoteAddr)
		server.ServeHTTP(w, r) // until the client disconnects
	})
}

// proxyServer returns a server with a usable connection to VPP. The caller calls end.
func (p *Plugin) proxyServer(ctx context.Context) (server *proxy.Server, end func(), err error) {
	info := p.manager.Info()
	if !info.Connected {
		return nil, nil, notConnected(info.Err)
	}
	server, err = proxy.NewServer()
	if err != nil {
		return nil, nil, err
	}
	if err := server.ConnectBinapi(socketclient.NewVppClient(info.Socket)); err != nil {
		return nil, nil, err
	}
	end = server.DisconnectBinapi
	if err := server.ConnectStats(statsclient.NewStatsClient(p.statsSocket)); err != nil {
		p.log.Log(ctx, slog.LevelDebug, "VPP proxy without counters", "err", err)
	} else {
		end = func() { server.DisconnectStats(); server.DisconnectBinapi() }
	}
	if err := awaitProxy(ctx, server); err != nil {
		end()
		return nil, nil, err
	}
	return server, end, nil
}

// awaitProxy waits until the server's connection, which it makes in the background, is
// usable. Only its own protocol tells that.
func awaitProxy(ctx context.Context, server *proxy.Server) error {
	ctx, cancel := context.WithTimeout(ctx, proxyConnects)
	defer cancel()
	here, there := net.Pipe()
	served := make(chan struct{})
	go func() { server.ServeConn(there); close(served) }()
	client := rpc.NewClient(here)
	defer func() { _ = client.Close(); <-served }()
	retry := backoff.Backoff{Min: 5 * time.Millisecond, Max: 100 * time.Millisecond}
	for {
		err := client.Call("BinapiRPC.Compatibility", proxy.BinapiCompatibilityRequest{}, &proxy.BinapiCompatibilityResponse{})
		if err == nil {
			return nil
		}
		if !backoff.Sleep(ctx, retry.Next()) {
			return fmt.Errorf("no connection to VPP within %s: %w", proxyConnects, err)
		}
	}
}
