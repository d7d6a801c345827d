package conns

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// lastRequests is how long requests in progress may take after the end.
const lastRequests = time.Second

// Serve serves until ctx ends or the listener fails, with TLS if web has a configuration for it. At the end it
// calls ending, if that is not nil, which ends long answers. Then it waits a second for requests in progress, and closes
// the connections. It returns nil if ctx ended.
func Serve(ctx context.Context, web *http.Server, l net.Listener, ending func()) error {
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
