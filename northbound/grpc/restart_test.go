package grpc_test

import (
	"iter"
	"maps"
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// A memory is what an agent leaves for the next one.
type memory map[string][]byte

func (m memory) Load() iter.Seq2[string, []byte] { return maps.All(maps.Clone(m)) }

func (m memory) Save(changes iter.Seq2[string, []byte]) error {
	for key, value := range changes {
		m[key] = value
		if value == nil {
			delete(m, key)
		}
	}
	return nil
}

func (m memory) Record(changes iter.Seq2[string, []byte]) error { return m.Save(changes) }

func (m memory) Stale() error { return nil }

func (m memory) Renew() error { return nil }

// What clients have declared survives a restart of the agent, with its labels and its source.
func TestRestart(t *testing.T) {
	kept := memory{}
	w := newWorld(t, kept)
	client := generic.NewManagerServiceClient(w.dial(t))
	labelled := put(iface("if1"), iface("if2"))
	labelled[0].Labels = map[string]string{"from": "test"}
	if _, err := client.SetConfig(with(t.Context(), "datasrc=ci"), &generic.SetConfigRequest{Updates: labelled}); err != nil {
		t.Fatal(err)
	}
	w.stop()

	w = newWorld(t, kept)
	client = generic.NewManagerServiceClient(w.dial(t))
	w.eventually(t, "both interfaces stand", func() bool { return w.names() == "if1 if2" })
	got, err := client.GetConfig(t.Context(), &generic.GetConfigRequest{Labels: map[string]string{"from": "test"}})
	if err != nil || len(got.Items) != 1 || got.Items[0].Item.Id.Name != "if1" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := client.SetConfig(with(t.Context(), "datasrc=ci"), &generic.SetConfigRequest{OverwriteAll: true}); err != nil || w.names() != "" {
		t.Errorf("stands %q, %v", w.names(), err)
	}
	w.stop()
	if len(kept) != 0 {
		t.Errorf("saved is %q", kept)
	}
}
