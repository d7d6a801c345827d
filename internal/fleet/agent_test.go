package fleet_test

import (
	"context"
	"testing"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/fleet"
	"github.com/keyplane/keyplane/internal/testkit"
)

// Two agents follow their own keys, and only these.
func TestAgents(t *testing.T) {
	server := testkit.StartEtcd(t, testkit.EtcdOptions{})
	client, err := etcd.Dial(t.Context(), etcd.Config{Endpoints: []string{server.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	options := fleet.Options{Store: "etcd", Conf: "endpoints: [" + server.Addr + "]"}
	options.Label = "fleet-" + t.Name() + "-1"
	one := fleet.Start(t, options)
	options.Label = "fleet-" + t.Name() + "-2"
	other := fleet.Start(t, options)
	for _, put := range []struct{ label, name, text string }{{one.Label, "a", "1"}, {other.Label, "b", "2"}, {one.Label, "c", fleet.Waits}, {one.Label, "d", fleet.Fails}} {
		if err := client.Put(ctx, fleet.Key(put.label, put.name), fleet.Value(put.name, put.text)); err != nil {
			t.Fatal(err)
		}
	}
	for a, want := range map[*fleet.Agent]map[string]string{one: {"a": "1"}, other: {"b": "2"}} {
		if err := a.Await(ctx, want); err != nil {
			t.Error(err)
		}
		if got := a.Health().Listings; got != 1 {
			t.Errorf("agent %s listed %d times", a.Label, got)
		}
	}
	if err := client.Put(ctx, fleet.Key(one.Label, fleet.Awaited), fleet.Value(fleet.Awaited, "x")); err != nil {
		t.Fatal(err)
	}
	if err := one.Await(ctx, map[string]string{"a": "1", "c": fleet.Waits, fleet.Awaited: "x"}); err != nil {
		t.Error(err)
	}
}
