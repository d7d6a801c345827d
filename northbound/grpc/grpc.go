// Package grpc serves the agent over gRPC: programs declare values, wait for them, and watch
// them, with the services of existing clients.
//
//	s := grpc.Server{Config: config, Options: grpc.Options{Scheduler: sched, Layers: orch}}
//	err := s.Run(ctx)
//
//	service                                  task
//	ligato.generic.ManagerService            values of any model: declare, read, watch
//	ligato.generic.MetaService               the models, and their .proto files
//	ligato.configurator.ConfiguratorService  the same in one message with a field for each model
//	ligato.configurator.StatsPollerService   counters of interfaces
//	grpc.health.v1, grpc.reflection          for tools
//
// A request is one transaction of the layer that its metadata "datasrc" names (docs/grpc.md
// lists the metadata). An error has one detail for each value that failed, bounded in number
// and size, because all details travel in one header.
//
// # Who may connect
//
// Clients of a Unix socket and those with a certificate can change the network and read secrets.
// Everybody else who reaches the address can read values and states without secrets, and change
// the network only if the configuration says so. Server.Private serves the same calls on the
// agent's own socket.
//
// # Bounds
//
// At the address, all clients together can take a bounded number of calls and amount of memory. net/http
// serves HTTP/2, and a gate in front of the server of gRPC receives each request and counts
// its memory before it is decoded, until the answer is written. See gate and docs/grpc.md.
//
// # Goroutines
//
// net/http and google.golang.org/grpc have goroutines for each call. This package adds one for the
// subscriptions (see hub) and keeps no other state between calls. Run ends all of them.
//
// Tests use real clients over TCP, TLS and Unix sockets on a real scheduler and orchestrator;
// only the southbound is a map.
package grpc

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// Options are the parts of the agent that the services use.
type Options struct {
	Scheduler *scheduler.Scheduler
	Layers    Layers // *orchestrator.Orchestrator
	// Label is the label of the agent, which each answer names. Calls for another label are
	// refused. Defaults to none: all calls are served.
	Label string
	// Socket is the path of the agent's own socket, which refusals name. Defaults to none.
	Socket string
	// Events report what Notify sends. Run calls each on a goroutine of its own; it ends when
	// its context ends. add never blocks; nobody may change a notification afterwards.
	Events []func(ctx context.Context, add func(...*configurator.Notification))
	// Counters reads the counters of the interfaces of VPP, for PollStats, which is
	// unavailable without it. It must be safe for concurrent use.
	Counters func(ctx context.Context) ([]*interfaces.InterfaceStats, error)
	// Metrics takes the figures of Config.PrometheusMetrics. Defaults to none.
	Metrics prometheus.Registerer
	// Services register further services, of the program that has this agent. A method counts as one
	// that changes something unless its option idempotency_level is NO_SIDE_EFFECTS: over TCP without
	// certificates it is refused then, unless the configuration says otherwise. Defaults to none.
	Services []func(rpc.ServiceRegistrar)
	// Memory is shared with others that take large requests and make large answers. Defaults to no bound.
	Memory *budget.Budget
	Log    *slog.Logger
}

// Layers are the values that programs declare; *orchestrator.Orchestrator has them.
type Layers interface {
	Declare(ctx context.Context, q orchestrator.Request) (*scheduler.Record, error)
	Effective(ctx context.Context, keys ...string) ([]orchestrator.Effective, error)
	Declarations(ctx context.Context, key string) ([]orchestrator.Declaration, error)
}

// service has what all services need.
type service struct {
	Options
	secrets bool          // clients may read secrets
	ended   chan struct{} // closed when the server stops: streams end
	states  *hub
	events  *notifications
	// The largest answer, in bytes.
	mostAnswer int
	awaited    *atomic.Int64 // values that calls wait for
}

// models are those that clients may declare.
func (s *service) models() *models.Registry { return s.Scheduler.Models() }

// register adds all services to a server.
func (s *service) register(to *rpc.Server) *health.Server {
	generic.RegisterManagerServiceServer(to, &manager{service: s})
	generic.RegisterMetaServiceServer(to, &meta{service: s})
	configurator.RegisterConfiguratorServiceServer(to, &config{service: s, dumping: make(chan struct{}, 1)})
	configurator.RegisterStatsPollerServiceServer(to, &poller{service: s})
	for _, add := range s.Services {
		add(to)
	}
	alive := health.NewServer()
	healthpb.RegisterHealthServer(to, alive)
	for name := range to.GetServiceInfo() {
		alive.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	reflection.Register(to) // v1 and v1alpha
	return alive
}
