package agent

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/counts"
	"github.com/keyplane/keyplane/orchestrator"
)

// TestChangesAreCounted has changes of each kind.
func TestChangesAreCounted(t *testing.T) {
	var l Layers
	if got := l.configuratorStats(); got.AllOperations.Count != 0 || len(got.Operations) != 0 {
		t.Errorf("at the start: %+v", got)
	}
	value, removal := orchestrator.Declared{Key: "a", JSON: []byte("{}")}, orchestrator.Declared{Key: "b"}
	for _, q := range []orchestrator.Request{
		{Values: []orchestrator.Declared{value}}, {Values: []orchestrator.Declared{removal, value}}, {Values: []orchestrator.Declared{removal}}, {Replace: true},
	} {
		l.count(operationOf(q), 0.5)
	}
	l.count("Update", 2)
	got := l.configuratorStats()
	if want := (counts.Method{Name: "all", Count: 5, Total: 4, Avg: 0.8, Min: 0.5, Max: 2}); got.AllOperations != want {
		t.Errorf("all: %+v, want %+v", got.AllOperations, want)
	}
	if want := (counts.Method{Name: "Update", Count: 3, Total: 3, Avg: 1, Min: 0.5, Max: 2}); got.Operations["Update"] != want {
		t.Errorf("updates: %+v, want %+v", got.Operations["Update"], want)
	}
	if names := slices.Sorted(maps.Keys(got.Operations)); !slices.Equal(names, []string{"Delete", "Resync", "Update"}) {
		t.Errorf("the operations are %v", names)
	}
}

// TestHealthTexts has the keys of a store. The text of a part changes with its state only.
func TestHealthTexts(t *testing.T) {
	st := wire.AgentStatus{State: wire.StateOK, LastUpdate: 7, PluginStatus: map[string]wire.PluginStatus{"etcd": {State: wire.StateOK, LastChange: 3, LastUpdate: 7}}}
	texts, err := healthTexts(st)
	if err != nil || len(texts) != 2 || string(texts["plugin/etcd"]) != `{"state":1,"last_change":3,"last_update":3}` {
		t.Errorf("the texts are %s, %v", texts, err)
	}
	var back wire.AgentStatus
	if err := json.Unmarshal(texts["agent"], &back); err != nil || back.LastUpdate != 7 {
		t.Errorf("the agent's is %s, %v", texts["agent"], err)
	}
}
