package agent

import (
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
	want := []counts.Method{
		{Name: "Delete", Count: 1, Total: 0.5, Avg: 0.5, Min: 0.5, Max: 0.5}, {Name: "Resync", Count: 1, Total: 0.5, Avg: 0.5, Min: 0.5, Max: 0.5},
		{Name: "Update", Count: 3, Total: 3, Avg: 1, Min: 0.5, Max: 2},
	}
	if !slices.Equal(got.Operations, want) {
		t.Errorf("the operations are %+v; expected %+v", got.Operations, want)
	}
}

// TestHealthTexts has the keys of a store, as readers of vpp-agent 3.5 expect them: in the JSON of
// protobuf, without the fields that only HTTP has. The text of a part changes with its state only.
func TestHealthTexts(t *testing.T) {
	st := wire.AgentStatus{
		BuildVersion: "v1", State: wire.StateError, StartTime: 2, LastChange: 3, LastUpdate: 7, PluginStatus: map[string]wire.PluginStatus{},
		NonFatalPlugins: []string{"vpp"}, Missing: []string{"a"}, Unapplied: []string{"b"},
	}
	st.Add(wire.PluginHealth{Name: "etcd", State: wire.StateOK}, 3)
	st.Add(wire.PluginHealth{Name: "vpp", State: wire.StateError, Error: "lost"}, 3)
	st.Add(wire.PluginHealth{Name: "new"}, 0)
	want := map[string]string{
		"agent": `{"build_version":"v1","state":"ERROR","start_time":"2","last_change":"3","last_update":"7",` +
			`"plugins":[{"name":"etcd","state":"OK"},{"name":"vpp","state":"ERROR","error":"lost"},{"name":"new"}]}`,
		"plugin/etcd": `{"state":"OK","last_change":"3","last_update":"3"}`,
		"plugin/vpp":  `{"state":"ERROR","last_change":"3","last_update":"3","error":"lost"}`,
		"plugin/new":  `{}`,
	}
	texts, err := healthTexts(st)
	if err != nil || len(texts) != len(want) {
		t.Errorf("the texts are %s, %v", texts, err)
	}
	for key, text := range want {
		if string(texts[key]) != text {
			t.Errorf("%s is %s, want %s", key, texts[key], text)
		}
	}
}
