package report

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A dump has the values of one view, without their secrets.
type dump struct {
	values []value
	err    error // of models that could not be read
}

// A value is a value of a dump.
type value struct {
	wire.DumpEntry
	model   string
	message proto.Message // nil: unknown
	text    string        // JSON
}

// dump reads the values of a view, model by model: the agent has a request for each.
func (r *reader) dump(ctx context.Context, view string) *dump {
	if known := r.dumps[view]; known != nil {
		return known
	}
	out := &dump{}
	if r.dumps == nil {
		r.dumps = map[string]*dump{}
	}
	r.dumps[view] = out
	known, err := r.s.Models(ctx, session.ConfigClass)
	var index wire.DumpIndex
	out.err = errors.Join(err, r.s.Get(ctx, "/scheduler/dump", nil, &index))
	var errs []error
	for _, m := range known {
		if !slices.Contains(index.KeyPrefixes, m.KeyPrefix) {
			continue
		}
		var entries []wire.DumpEntry
		if err := r.s.Get(ctx, "/scheduler/dump", url.Values{"key-prefix": {m.KeyPrefix}, "view": {view}}, &entries); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Name, err))
			continue
		}
		for _, e := range entries {
			v, err := r.hidden(e)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", e.Key, err))
				continue
			}
			v.model = m.Name
			out.values = append(out.values, v)
		}
	}
	out.err = errors.Join(append(errs, out.err)...)
	return out
}

// hidden returns an entry without its secrets: the agent shows them on its socket. A value that
// cannot be decoded is left out, since it may have some.
func (r *reader) hidden(e wire.DumpEntry) (value, error) {
	out := value{DumpEntry: e}
	if e.Value == nil {
		return out, nil
	}
	kind, err := r.s.MessageType(e.Value.ProtoMsgName)
	if err != nil {
		return out, err
	}
	m := kind.New().Interface()
	// Fields that this release does not know are dropped, because they may be secrets.
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(e.Value.ProtoMsgData, m); err != nil {
		return out, err
	}
	out.message = models.Redacted(m)
	text, err := models.JSON(out.message)
	out.text = string(text)
	return out, err
}

// view lists the values of a view with key, origin and metadata.
func view(name string) func(context.Context, *reader) (string, error) {
	return func(ctx context.Context, r *reader) (string, error) {
		d := r.dump(ctx, name)
		var out strings.Builder
		for _, v := range d.values {
			fmt.Fprintf(&out, "%s\n  model: %s, origin: %s\n  value: %s\n", v.Key, v.model, originName(v.Origin), v.text)
			if meta := string(v.Metadata); meta != "" && meta != "null" {
				fmt.Fprintf(&out, "  metadata: %s\n", strings.Join(strings.Fields(meta), " "))
			}
		}
		return out.String(), d.err
	}
}

// originName returns the word for an origin that package wire numbers.
func originName(n int) string {
	switch n {
	case wire.FromNB:
		return "declared"
	case wire.FromSB:
		return "observed"
	default:
		return "unknown"
	}
}

// document lists the values of a view as a configuration document. Values of models that only the
// agent has are in the views alone.
func document(name string) func(context.Context, *reader) (string, error) {
	return func(ctx context.Context, r *reader) (string, error) {
		d := r.dump(ctx, name)
		var items []structured.Item
		for _, v := range d.values {
			m, ok := models.BuiltIn().ByName(v.model)
			if group, _ := groupOf(m); ok && group != "" && v.message != nil {
				items = append(items, structured.Item{Model: m, Key: v.Key, Value: []byte(v.text)})
			}
		}
		text, err := structured.For(models.BuiltIn()).Format(items)
		if len(text) == 0 {
			text = []byte("{}\n")
		}
		return string(text), errors.Join(d.err, err)
	}
}

// groupOf returns the place of a model in a document; nil has none.
func groupOf(m *models.Model) (group, field string) {
	if m == nil {
		return "", ""
	}
	return m.ConfigField()
}
