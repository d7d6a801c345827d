package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// TestAppendIndent compares the fast way with encoding/json.
func TestAppendIndent(t *testing.T) {
	full := &interfaces.Interface{Name: "a\"<b>&\u00e9", Type: interfaces.Interface_DUMMY, IpAddresses: []string{"10.0.0.1/24", "10.0.0.2/24"}, Mtu: 1400}
	for _, e := range []wire.DumpEntry{
		{},
		{Key: "config/a", Value: wire.MessageOf(full), Origin: wire.FromNB, Metadata: json.RawMessage(`{"Index":1,"None":{},"List":[1,{"a":[]}]}`)},
		{Key: "\t\"\\é<>&", Value: wire.MessageOf(&interfaces.Interface{}), Origin: wire.FromSB, Metadata: json.RawMessage("null")},
		{Key: "invalid \xff", Value: wire.MessageOf(full)},
		{Key: "a", Metadata: json.RawMessage("{")},
	} {
		for _, prefix := range []string{"", "    "} {
			var want bytes.Buffer
			encoder := json.NewEncoder(&want)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent(prefix, "  ")
			encodeErr := encoder.Encode(e)
			got, err := e.AppendIndent([]byte("before "), prefix)
			switch {
			case err == nil && string(got) != "before "+string(bytes.TrimSuffix(want.Bytes(), []byte("\n"))):
				t.Errorf("%q:\n%s\nwant\n%s", e.Key, got, want.Bytes())
			case err != nil && string(got) != "before ":
				t.Errorf("%q: after %v the text is %s", e.Key, err, got)
			case encodeErr != nil && err == nil:
				t.Errorf("%q: encoding/json refuses it: %v", e.Key, encodeErr)
			}
		}
	}
}
