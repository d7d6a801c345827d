package rest

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/northbound/rest/internal/records"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// TestRecordsTellNoSecrets has transactions with a secret. Dumps show it to the agent's own user.
func TestRecordsTellNoSecrets(t *testing.T) {
	v := &interfaces.Interface{Name: "a", Link: &interfaces.Interface_Memif{Memif: &interfaces.MemifLink{Secret: "topsecret"}}}
	r := &scheduler.Record{
		Planned:  scheduler.Operations{}.With(scheduler.Operation{Key: "a", Old: v, New: v}),
		Executed: scheduler.Operations{}.With(scheduler.Operation{Key: "a", Old: v, New: v}),
	}
	answer := httptest.NewRecorder()
	_ = reply.One(answer, records.Of(r)) // never fails
	if text := answer.Body.String(); strings.Contains(text, "topsecret") || strings.Count(text, "(secret)") != 4 {
		t.Errorf("the record is %s", text)
	}
	if text := txnlog.Text(r, -1); strings.Contains(text, "topsecret") || !strings.Contains(text, "(secret)") {
		t.Errorf("the transaction log is\n%s", text)
	}
	for shown, want := range map[bool]string{true: "topsecret", false: "(secret)"} {
		h := handler{Options: Options{Secrets: shown}}
		got, err := json.Marshal(h.item(scheduler.Found[proto.Message, any]{Key: "a", Value: v}).Value)
		if err != nil || !strings.Contains(string(got), `"secret":"`+want+`"`) {
			t.Errorf("with Secrets %v the details are %s (%v)", shown, got, err)
		}
	}
	for shown, want := range map[bool]string{true: "topsecret", false: "(secret)"} {
		h := handler{Options: Options{Secrets: shown}}
		for _, entry := range []wire.DumpEntry{
			h.declaredEntry(&scheduler.Status{Key: "a", Desired: v}), h.appliedEntry(&scheduler.Status{Key: "a", Actual: v}), h.retrievedEntry(scheduler.Found[proto.Message, any]{Key: "a", Value: v}),
		} {
			text, err := json.Marshal(entry)
			if err != nil || !strings.Contains(string(text), `"secret":"`+want+`"`) {
				t.Errorf("with Secrets %v the dump is %s (%v)", shown, text, err)
			}
		}
	}
}
