package consul

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A wire is a listener whose connections are pipes, so that a server and its client work in virtual time.
type wire chan net.Conn

func (w wire) Accept() (net.Conn, error) {
	if c, ok := <-w; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (w wire) Close() error   { close(w); return nil }
func (w wire) Addr() net.Addr { return &net.UnixAddr{} }

func (w wire) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	w <- server
	return client, nil
}

// A watch finds the connection of the last answer again, however long it has paused.
func TestPausesOutliveNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		index := 0
		line := make(wire)
		server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			index++
			w.Header().Set("X-Consul-Index", fmt.Sprint(index))
			fmt.Fprintf(w, `[{"Key":"a","ModifyIndex":%d,"Value":"MQ=="}]`, index)
		})}
		served := make(chan error)
		go func() { served <- server.Serve(line) }()
		c, err := newClient(Config{Address: "consul:8500", ProbeInterval: time.Second}.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		c.lists.Transport.(*http.Transport).DialContext = line.dial

		enough := errors.New("enough")
		answers, begun := 0, time.Now()
		w := newWatch(c, slog.New(slog.DiscardHandler), "/", func(kvdbsync.Batch) error {
			if answers++; answers == 3 {
				return enough
			}
			return nil
		})
		w.pace = pace{rate.NewLimiter(perAnswer/60, bytesAtOnce)}
		w.pace.bucket.AllowN(begun, bytesAtOnce) // from now on, about a minute for each answer
		if err := w.run(t.Context()); !errors.Is(err, enough) {
			t.Errorf("after %d answers and %v: %v", answers, time.Since(begun), err)
		}
		if paused := time.Since(begun); paused < 2*time.Minute {
			t.Errorf("it paused for %v only", paused)
		}
		c.close()
		server.Close()
		<-served
	})
}
