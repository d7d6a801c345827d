package stores

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// Root is the agent's prefix in every store. It differs from the default label, so a test
// cannot disturb a real agent of this host.
const Root = "/vnf-agent/faults/"

// KeyPrefix returns the prefix of interfaces below Root; a name follows it.
func KeyPrefix() string { return models.For[*interfaces.Interface]().Prefix() }

// KeyOf returns the whole key of a name.
func KeyOf(name string) string { return Root + KeyPrefix() + name }

// NameOf returns the name in a key. The key may lack Root, and may have a leading slash.
func NameOf(key string) string {
	_, name, _ := strings.Cut(key, KeyPrefix())
	return name
}

// RawMark begins the text of a value that is no valid interface. The rest of the text is
// the value itself.
const RawMark = "raw:"

// ValueOf returns the value that a store holds under a name for a text.
func ValueOf(name, text string) []byte {
	if raw, ok := strings.CutPrefix(text, RawMark); ok {
		return []byte(raw)
	}
	return fmt.Appendf(nil, `{"name":%q,"type":"DUMMY","host_if_name":%q}`, name, text)
}

// TextOf returns the text of a stored value. It is the inverse of ValueOf.
func TextOf(value []byte) string {
	var v struct {
		Name string `json:"name"`
		Text string `json:"host_if_name"`
	}
	if json.Unmarshal(value, &v) != nil || v.Text == "" {
		return RawMark + string(value)
	}
	return v.Text
}

// MessageOf returns the interface that the agent reads from ValueOf(name, text).
func MessageOf(name, text string) *interfaces.Interface {
	return &interfaces.Interface{Name: name, Type: interfaces.Interface_DUMMY, HostIfName: text}
}

// PairsOf returns changes as keys and values. The value of a deletion is nil.
func PairsOf(changes []history.Change) (out []kvdbsync.Pair) {
	for _, c := range changes {
		p := kvdbsync.Pair{Key: KeyOf(c.Key)}
		if c.Text != "" {
			p.Value = ValueOf(c.Key, c.Text)
		}
		out = append(out, p)
	}
	return out
}
