package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// A discard is a client that counts what it reads.
type discard struct {
	header http.Header
	bytes  int
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { d.bytes += len(p); return len(p), nil }

// BenchmarkDump answers dumps of 100,000 routes, and their configuration and health.
func BenchmarkDump(b *testing.B) {
	const n = 100_000
	s := scheduler.New(scheduler.Options{})
	stands := make([]scheduler.Found[*l3.Route, struct{}], n)
	_, err := scheduler.Register(s, scheduler.Descriptor[*l3.Route, struct{}]{
		Name: "route", Model: models.For[*l3.Route](),
		Create: func(context.Context, string, *l3.Route) (struct{}, error) { return struct{}{}, nil },
		Delete: func(context.Context, string, *l3.Route, struct{}) error { return nil },
		Retrieve: func(context.Context, []scheduler.Desired[*l3.Route]) scheduler.Retrieved[*l3.Route, struct{}] {
			return func(yield func(scheduler.Found[*l3.Route, struct{}], error) bool) {
				for _, f := range stands {
					if f.Value != nil && !yield(f, nil) {
						return
					}
				}
			}
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()
	var txn scheduler.Txn
	for i := range stands {
		route := &l3.Route{OutgoingInterface: "if1", DstNetwork: fmt.Sprintf("10.%d.%d.%d/32", i>>16, i>>8&255, i&255), GwAddr: "192.0.2.1"}
		key, err := models.For[*l3.Route]().Key(route)
		if err != nil {
			b.Fatal(err)
		}
		v, err := s.Value(key, route)
		if err != nil {
			b.Fatal(err)
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	if _, err := s.Commit(ctx, txn); err != nil {
		b.Fatal(err)
	}
	for i, c := range txn.Changes {
		stands[i] = scheduler.Found[*l3.Route, struct{}]{Key: c.Key, Value: c.Value.Message().(*l3.Route)}
	}
	health := &health.Health{Scheduler: s}
	health.Complete()
	handler := Handler(Options{Scheduler: s, Health: health})
	for name, url := range map[string]string{
		"NB": "/scheduler/dump?descriptor=route&view=NB", "cached": "/scheduler/dump?descriptor=route&view=cached", "SB": "/scheduler/dump?descriptor=route",
		"details": "/dump/linux/v2/routes", "configuration": "/configuration", "readiness": "/readiness",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				client := &discard{header: http.Header{}}
				handler.ServeHTTP(client, httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil))
				if client.status != http.StatusOK || client.bytes == 0 {
					b.Fatal(client.status, client.bytes)
				}
				b.ReportMetric(float64(client.bytes), "bytes")
			}
		})
	}
}
