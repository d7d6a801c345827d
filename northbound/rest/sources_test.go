package rest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// knownSources are three stores: one is synced, one is not there, one is being listed.
type knownSources struct{ since time.Time }

func (s knownSources) Health() []orchestrator.Health {
	refused := errors.New("dial tcp 127.0.0.1:2379: connect: connection refused")
	return []orchestrator.Health{
		{Health: kvdbsync.Health{Source: "filedb", State: kvdbsync.Synced, Since: s.since, Keys: 3, Problems: 1}, Priority: 20, Complete: true, Refused: 1, Faults: []string{"lan.yaml:3: no mapping"}},
		{Health: kvdbsync.Health{Source: "etcd", State: kvdbsync.Lost, Since: s.since.Add(time.Hour), Rev: 712, Keys: 2, Failures: 7, Err: refused, LastErr: refused, LastErrAt: s.since.Add(2 * time.Hour)}, Priority: 10, Remembered: 2},
		{Health: kvdbsync.Health{Source: "redis", State: kvdbsync.Syncing, Since: s.since, Listed: 4000}, Priority: 5},
	}
}

func (knownSources) Relist() {}

func (knownSources) Forget(_ context.Context, name string) (*scheduler.Record, error) {
	return nil, fmt.Errorf("%w: %q", orchestrator.ErrNoSource, name)
}

func (s knownSources) Declarations(ctx context.Context, key string) ([]orchestrator.Declaration, error) {
	all, err := s.DeclarationsUnder(ctx, key)
	return slices.DeleteFunc(all, func(c orchestrator.Declaration) bool { return c.Key != key }), err
}

func (knownSources) DeclarationsUnder(_ context.Context, prefix string) ([]orchestrator.Declaration, error) {
	invalid := &models.FieldError{Field: "mtu", Value: 10000, Expected: "at most 9216"}
	all := []orchestrator.Declaration{
		{Key: ifPrefix + "if1", Source: "filedb", Writer: "filedb", Priority: 20, Err: invalid},
		{Key: ifPrefix + "if1", Source: "etcd", Writer: "etcd, revision 700", Priority: 10, HasValid: true, Effective: true, Remembered: true},
		{Key: ifPrefix + "if2", Source: "filedb", Writer: "filedb", Priority: 20, HasValid: true, Effective: true},
		{Key: ifPrefix + "if2", Source: "etcd", Writer: "etcd, revision 700", Priority: 10, HasValid: true, Remembered: true, Doubted: true},
		{Key: "config/vpp/v2/interfaces/if3", Source: "filedb", Writer: "filedb", Priority: 20, Err: scheduler.ErrUnimplemented},
	}
	return slices.DeleteFunc(all, func(c orchestrator.Declaration) bool { return !strings.HasPrefix(c.Key, prefix) }), nil
}
