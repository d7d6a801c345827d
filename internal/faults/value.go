package faults

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// root is the agent's place in the store.
const root = "/vnf-agent/faults/"

// keyPrefix is where below root the items are: names follow.
func keyPrefix() string { return models.For[*interfaces.Interface]().Prefix() }

// keyOf is the whole key of a name.
func keyOf(name string) string { return root + keyPrefix() + name }

// nameOf is the name of a key, whole or below root, with or without a leading slash.
func nameOf(key string) string {
	_, name, _ := strings.Cut(key, keyPrefix())
	return name
}

// rawMark begins the text of a value that is no interface.
const rawMark = "raw:"

// valueOf is what is stored under name for a text.
func valueOf(name, text string) []byte {
	if raw, ok := strings.CutPrefix(text, rawMark); ok {
		return []byte(raw)
	}
	return fmt.Appendf(nil, `{"name":%q,"type":"DUMMY","host_if_name":%q}`, name, text)
}

// textOf is the reverse: the text that a stored value carries.
func textOf(value []byte) string {
	var v struct {
		Name string `json:"name"`
		Text string `json:"host_if_name"`
	}
	if json.Unmarshal(value, &v) != nil || v.Text == "" {
		return rawMark + string(value)
	}
	return v.Text
}

// messageOf is what the agent makes of it.
func messageOf(name, text string) *interfaces.Interface {
	return &interfaces.Interface{Name: name, Type: interfaces.Interface_DUMMY, HostIfName: text}
}
