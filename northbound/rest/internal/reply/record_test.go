package reply_test

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// TestRecordIsWrittenAsAWhole writes records value by value, alone and in a list, and
// compares them with encoding/json.
func TestRecordIsWrittenAsAWhole(t *testing.T) {
	value := &wire.Message{ProtoMsgName: "a.B", ProtoMsgData: json.RawMessage(`{"x":[1,2],"s":"<&>"}`)}
	operations := []wire.Operation{{Operation: "CREATE", Key: "a", NewValue: value}, {Operation: "DELETE", Key: "<b>", NOOP: true}}
	records := []wire.Record{
		{},
		{SeqNum: 7, Start: time.Unix(1, 2).UTC(), TxnType: "NBTransaction", Description: "<a>", Executed: operations},
		{Values: []wire.KeyValue{{Key: "a", Value: value, Origin: wire.FromNB}, {Key: "b"}}, Planned: operations, NotReadBack: []string{"a\nb", "c"}},
	}
	var pieces []reply.Record
	for _, r := range records {
		head := r
		head.Values, head.Planned, head.Executed, head.NotReadBack = nil, nil, nil, nil
		piece := reply.Record{
			Head: head, Values: slices.Values(r.Values), Planned: slices.Values(r.Planned),
			Executed: slices.Values(r.Executed), NotReadBack: slices.Values(r.NotReadBack),
		}
		pieces = append(pieces, piece)
		answer := httptest.NewRecorder()
		_ = reply.One(answer, piece) // never fails
		same(t, answer.Body.String(), r)
	}
	answer := httptest.NewRecorder()
	_ = reply.Array(answer, slices.Values(pieces)) // never fails
	same(t, answer.Body.String(), records)
}

// same compares an answer with the way in which encoding/json writes v.
func same(t *testing.T, answer string, v any) {
	t.Helper()
	var whole bytes.Buffer
	reply.Encode(&whole, "", v)
	if answer != whole.String() {
		t.Errorf("the answer is\n%s\nwant\n%s", answer, &whole)
	}
}
