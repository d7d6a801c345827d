package config

import (
	"io"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
)

// A network is a configuration document: values in groups such as linuxConfig.
type network struct {
	text     string // YAML, which config update reads
	fields   any    // the same, for templates
	messages []proto.Message
}

// networkOf returns the document of values, in their order. Fields have names in lowerCamelCase, as in vpp-agent 3.5.
func networkOf(r *models.Registry, messages []proto.Message) (*network, error) {
	var items []structured.Item
	for _, v := range messages {
		m, ok := r.ForMessage(v)
		if !ok {
			continue // has no place in a document
		}
		text, err := models.CamelCaseJSON(v)
		if err != nil {
			return nil, err
		}
		items = append(items, structured.Item{Model: m, Value: text})
	}
	text, err := structured.For(r).Format(items)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 { // an empty document would not be a mapping
		text = []byte("{}\n")
	}
	out := &network{text: string(text), messages: messages}
	return out, yaml.Unmarshal(text, &out.fields)
}

// Held implements show.Holder.
func (n *network) Held() any { return n.messages }

// write prints the document, as YAML unless the user wants another format.
func (n *network) write(s io.Writer, terminal bool, f *show.Format) error {
	switch f.Word() {
	case "", "yaml":
		text := n.text
		if terminal {
			text = printable.Text(text)
		}
		_, err := io.WriteString(s, text)
		return err
	case "proto":
		return f.Write(s, n, nil)
	default:
		return f.Write(s, n.fields, nil)
	}
}
