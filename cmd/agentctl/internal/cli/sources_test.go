package cli_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/scheduler"
)

// twoSources have what the scripts show: one store that is there, one that is not, and a
// third that is being listed and has shown nothing that counts yet.
type twoSources struct{}

func (twoSources) Health() []orchestrator.Health {
	return []orchestrator.Health{
		{Health: kvdbsync.Health{Source: "filedb", State: kvdbsync.Synced, Keys: 3, Problems: 2}, Priority: 20, Complete: true, Refused: 1,
			Faults: []string{"lan.yaml:2: unknown field \"interfces\": did you mean interfaces?"}},
		{Health: kvdbsync.Health{Source: "etcd", State: kvdbsync.Connecting, Err: errors.New("connection refused")}, Priority: 10, Remembered: 1},
		{Health: kvdbsync.Health{Source: "redis", State: kvdbsync.Syncing, Listed: 4000}, Priority: 5},
	}
}

func (twoSources) Relist() {}

func (twoSources) Forget(_ context.Context, name string) (*scheduler.Record, error) {
	return nil, fmt.Errorf("%w: %q", orchestrator.ErrNoSource, name)
}

func (s twoSources) Declarations(ctx context.Context, key string) ([]orchestrator.Declaration, error) {
	all, err := s.DeclarationsUnder(ctx, key)
	return slices.DeleteFunc(all, func(c orchestrator.Declaration) bool { return c.Key != key }), err
}

func (twoSources) DeclarationsUnder(_ context.Context, prefix string) ([]orchestrator.Declaration, error) {
	const veth1, route = "config/linux/interfaces/v2/interface/veth1", "config/linux/l3/v2/route/10.1.0.0/16/veth1"
	all := []orchestrator.Declaration{
		{Key: veth1, Source: "filedb", Writer: "filedb", Priority: 20, Err: errors.New("mtu is 70000; expected at most 65535")},
		{Key: veth1, Source: "etcd", Writer: "etcd, revision 7", Priority: 10, HasValid: true, Effective: true, Remembered: true},
		{Key: route, Source: "filedb", Writer: "filedb", Priority: 20, HasValid: true, Effective: true},
	}
	return slices.DeleteFunc(all, func(c orchestrator.Declaration) bool { return !strings.HasPrefix(c.Key, prefix) }), nil
}
