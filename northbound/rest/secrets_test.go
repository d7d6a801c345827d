package rest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// TestRecordsTellNoSecrets has transactions with a secret; who dumps values sees it.
func TestRecordsTellNoSecrets(t *testing.T) {
	v := &interfaces.Interface{Name: "a", Link: &interfaces.Interface_Memif{Memif: &interfaces.MemifLink{Secret: "topsecret"}}}
	r := &scheduler.Record{
		Planned:  []scheduler.Operation{{Key: "a", Old: v, New: v}},
		Executed: []scheduler.Operation{{Key: "a", Old: v, New: v}},
	}
	text, err := json.Marshal(recordOf(r))
	if err != nil || strings.Contains(string(text), "topsecret") || strings.Count(string(text), "(secret)") != 4 {
		t.Errorf("the record is %s (%v)", text, err)
	}
	if text := r.Text(-1); strings.Contains(text, "topsecret") || !strings.Contains(text, "(secret)") {
		t.Errorf("the transaction log is\n%s", text)
	}
	entry, err := json.Marshal(wantedEntry(&scheduler.Status{Key: "a", Want: v}))
	if err != nil || !strings.Contains(string(entry), "topsecret") {
		t.Errorf("the dump is %s (%v)", entry, err)
	}
}
