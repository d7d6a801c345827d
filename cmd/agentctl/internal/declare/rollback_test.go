package declare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// record returns a transaction that declared one value; "" removed it.
func record(seq uint64, key, value string) wire.Record {
	v := wire.KeyValue{Key: key}
	if value != "" {
		v.Value = &wire.Message{ProtoMsgData: []byte(value)}
	}
	return wire.Record{SeqNum: seq, TxnType: "NBTransaction", Values: []wire.KeyValue{v}}
}

func TestValuesAfter(t *testing.T) {
	other := record(4, "a", "")
	other.TxnType = "SBNotification"
	all := []wire.Record{record(1, "a", `{"x":1}`), record(0, "b", `{"y":1}`), record(2, "a", `{"x":2}`), record(3, "c", `{}`), other, record(5, "b", "")}
	for to, want := range map[uint64]string{0: `a= b={"y":1} c=`, 1: `a={"x":1} b={"y":1} c=`, 2: `b={"y":1} c=`, 5: ""} {
		got, err := valuesAfter(all, to)
		var out []string
		for _, key := range []string{"a", "b", "c"} {
			if value, ok := got[key]; ok {
				out = append(out, fmt.Sprintf("%s=%s", key, value))
			}
		}
		if text := strings.Join(out, " "); err != nil || text != want {
			t.Errorf("after #%d: %s, %v; expected %s", to, text, err, want)
		}
	}
	// A resync that replaces removes what it does not name.
	replaced := record(8, "b", "{}")
	replaced.ResyncType = "FullResync"
	got, err := valuesAfter([]wire.Record{record(0, "a", `{"x":1}`), replaced}, 0)
	if err != nil || string(got["a"]) != `{"x":1}` || len(got) != 2 {
		t.Errorf("before a resync: %s, %v; expected a, and b removed", got, err)
	}
	got, err = valuesAfter([]wire.Record{record(7, "a", `{"x":1}`), replaced, record(9, "c", "{}")}, 8)
	if value, ok := got["c"]; err != nil || len(got) != 1 || !ok || value != nil {
		t.Errorf("after a resync: %s, %v; expected that c is removed", got, err)
	}
	// A transaction that was undone declared nothing.
	undone := record(1, "a", `{"x":2}`)
	undone.Revert, undone.Executed = true, []wire.Operation{{Key: "a", NewErrMsg: "broken"}}
	got, err = valuesAfter([]wire.Record{record(0, "a", `{"x":1}`), undone, record(2, "a", "")}, 1)
	if err != nil || string(got["a"]) != `{"x":1}` {
		t.Errorf("after a transaction that was undone: %s, %v", got, err)
	}
	// The history has lost its beginning, or hides a secret.
	if _, err := valuesAfter([]wire.Record{record(7, "a", "{}"), record(8, "b", "{}")}, 7); err == nil || !strings.Contains(err.Error(), "b: the history no longer has its earlier value") {
		t.Errorf("lost: %v", err)
	}
	if _, err := valuesAfter([]wire.Record{record(0, "a", `{"key":"(secret)"}`), record(1, "a", "")}, 0); err == nil || !strings.Contains(err.Error(), "a: the history hides its secrets") {
		t.Errorf("secret: %v", err)
	}
}
