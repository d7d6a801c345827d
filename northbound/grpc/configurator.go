package grpc

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/scheduler/inspect"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// config is ligato.configurator.ConfiguratorService.
type config struct {
	configurator.UnimplementedConfiguratorServiceServer
	*service
	// It holds a token while the system is dumped. A dump of a large system takes much memory, and
	// one of a system that does not answer waits.
	dumping chan struct{}
}

// Update puts values, as one transaction.
func (c *config) Update(ctx context.Context, req *configurator.UpdateRequest) (*configurator.UpdateResponse, error) {
	values, err := c.valuesOf("update", req.GetUpdate(), false)
	if err != nil {
		return nil, err
	}
	replace, wait := req.GetFullResync(), req.GetWaitDone()
	req.Reset()
	if _, err := c.declare(ctx, values, replace, wait); err != nil {
		return nil, err
	}
	return &configurator.UpdateResponse{}, nil
}

// Delete deletes values, as one transaction. Only the fields that make their keys matter.
func (c *config) Delete(ctx context.Context, req *configurator.DeleteRequest) (*configurator.DeleteResponse, error) {
	values, err := c.valuesOf("delete", req.GetDelete(), true)
	if err != nil {
		return nil, err
	}
	wait := req.GetWaitDone()
	req.Reset()
	if _, err := c.declare(ctx, values, false, wait); err != nil {
		return nil, err
	}
	return &configurator.DeleteResponse{}, nil
}

// Get returns the values that take effect, of all sources.
func (c *config) Get(ctx context.Context, _ *configurator.GetRequest) (*configurator.GetResponse, error) {
	all, err := c.Layers.Effective(ctx)
	if err != nil {
		return nil, c.failure(err)
	}
	a := c.newAnswer()
	for _, v := range all {
		if err := a.add(v.Message); err != nil {
			return nil, c.failure(err)
		}
	}
	if err := c.begin(ctx, a); err != nil {
		return nil, c.failure(err)
	}
	b := newBuilder()
	for _, v := range all {
		b.add(c.shown(v.Message))
	}
	return &configurator.GetResponse{Config: b.config}, nil
}

// shown returns a value without the secrets that the client may not read.
func (s *service) shown(v proto.Message) proto.Message {
	if s.secrets {
		return v
	}
	return models.Redacted(v)
}

// Dump reads the actual values of all models from the system. A part of the system that is
// not connected has no values; if another one cannot be read, or the answer would be too large, the
// call fails. One dump runs at a time.
func (c *config) Dump(ctx context.Context, _ *configurator.DumpRequest) (*configurator.DumpResponse, error) {
	select {
	case c.dumping <- struct{}{}:
	case <-ctx.Done():
		return nil, c.failure(ctx.Err())
	}
	defer func() { <-c.dumping }()
	a := c.newAnswer()
	if err := c.begin(ctx, a); err != nil {
		return nil, c.failure(err)
	}
	b := newBuilder()
	connected := stats.Of(c.Scheduler).Connections
	for _, d := range inspect.Descriptors(c.Scheduler) {
		ready, needs := connected[d.Connection]
		if !d.Modelled || !d.Retrieves || needs && !ready {
			continue
		}
		found, err := inspect.Dump(ctx, c.Scheduler, d.Name)
		if err != nil {
			return nil, c.failure(err)
		}
		for _, f := range found {
			if err := a.add(f.Value); err != nil {
				return nil, c.failure(err)
			}
			b.add(c.shown(f.Value))
		}
	}
	return &configurator.DumpResponse{Dump: b.config}, nil
}
