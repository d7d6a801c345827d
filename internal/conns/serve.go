package conns

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/keyplane/keyplane/internal/sender"
)

// lastRequests is how long requests in progress may take after the end.
const lastRequests = time.Second

const (
	// receiveBuffer is how many bytes of requests a connection of HTTP/2 keeps until they are read.
	receiveBuffer = 256 << 10
	// maxFrame is the largest frame of HTTP/2 from a client, in bytes, which is the smallest maximum that the
	// protocol allows. Each connection keeps a buffer for one.
	maxFrame = 16 << 10
)

// bound bounds the memory of each connection of HTTP/2.
func bound(web *http.Server) {
	if web.HTTP2 == nil {
		web.HTTP2 = &http.HTTP2Config{}
	}
	web.HTTP2.MaxReceiveBufferPerConnection = receiveBuffer
	web.HTTP2.MaxReceiveBufferPerStream = receiveBuffer
	web.HTTP2.MaxReadFrameSize = maxFrame
}

// Serve serves until ctx ends or the listener fails, with TLS if web has a configuration for it. It
// bounds what connections of HTTP/2 keep, and package sender knows who sends a request. At the end it calls ending, if that is not nil, which ends
// long answers. Then it waits a second for requests in progress, and closes the connections. It
// returns nil if ctx ended.
func Serve(ctx context.Context, web *http.Server, l net.Listener, ending func()) error {
	bound(web)
	web.ConnContext = sender.OfConn
	served := make(chan error, 1)
	go func() {
		if web.TLSConfig != nil {
			served <- web.ServeTLS(l, "", "")
			return
		}
		served <- web.Serve(l)
	}()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	if ending != nil {
		ending()
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRequests)
	defer cancel()
	if web.Shutdown(last) != nil {
		web.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
