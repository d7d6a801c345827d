package inspect

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/browse"
)

// explained is the number of values that one request asks for with their causes: the most that an
// agent answers.
const explained = 200

// read returns the items: those with keys in the order of the command line, and then those of models, sorted by key.
func (g *getter) read(ctx context.Context) (out []item, err error) {
	for _, key := range g.keys {
		i, err := g.one(ctx, key)
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	for _, m := range g.models {
		more, err := g.ofModel(ctx, m)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// itemOf begins an item with the state of a value.
func (g *getter) itemOf(v browse.ListedValue) item {
	out := item{Key: v.Key, State: v.State, Since: v.Since, LastOperation: v.LastOperation}
	if model, name := g.known.ModelAndName(v.Key); model != "" {
		out.Model, out.Name = model, name
	}
	if v.Error != "" {
		out.Reason = append(out.Reason, show.Remote(v.Error))
	}
	for _, r := range v.Roots {
		text := show.Line(r.Text)
		if r.Key != "" && !strings.Contains(text, r.Key) {
			text = show.Line(r.Key) + ": " + text
		}
		out.Reason = append(out.Reason, text)
	}
	if len(out.Reason) == 0 && len(v.Details) > 0 && v.State != "CONFIGURED" {
		out.Reason = append(out.Reason, "missing: "+show.Line(strings.Join(v.Details, ", ")))
	}
	return out
}

// one returns the item of a key.
func (g *getter) one(ctx context.Context, key string) (item, error) {
	var d browse.ValueDetails
	if err := g.s.Get(ctx, "/scheduler/value", url.Values{"key": {key}}, &d); err != nil {
		return item{}, err
	}
	var e wire.Explanation
	if err := g.s.Get(ctx, "/scheduler/explain", url.Values{"key": {key}}, &e); err != nil {
		return item{}, err
	}
	for _, root := range rootsOf(e) {
		d.Value.Roots = append(d.Value.Roots, browse.Root{Key: root.Key, Text: root.Text})
	}
	out := g.itemOf(d.Value)
	out.Declared, out.Actual = d.Desired, d.Actual
	parts, err := g.troubled(ctx, d.Derived)
	if err != nil {
		return item{}, err
	}
	out.Reason = append(out.Reason, parts...)
	sources, err := g.sources(ctx, url.Values{"key": {key}})
	out.Sources = sources[d.Value.Key]
	return out, err
}

// mostParts is how many parts of a value are explained.
const mostParts = 3

// troubled returns what is wrong with the parts of a value: an interface that is CONFIGURED may have an address that is not.
func (g *getter) troubled(ctx context.Context, parts []browse.Neighbour) (out []string, err error) {
	for _, part := range parts {
		if slices.Contains([]string{"CONFIGURED", "OBTAINED", "DISCOVERED"}, part.State) {
			continue
		}
		if len(out) == mostParts {
			return append(out, "and more of its parts: agentctl explain names them"), nil
		}
		var d browse.ValueDetails
		err := g.s.Get(ctx, "/scheduler/value", url.Values{"key": {part.Key}}, &d)
		if missing(err) { // it has gone since
			continue
		}
		if err != nil {
			return nil, err
		}
		text := show.Line(part.Key) + " is " + show.Line(d.Value.State)
		if why := g.itemOf(d.Value).Reason; len(why) > 0 {
			text += ": " + strings.Join(why, "; ")
		}
		out = append(out, text)
	}
	return out, nil
}

// rootsOf returns the last causes of an explanation; none: the cause is the value itself.
func rootsOf(e wire.Explanation) (out []wire.Explanation) {
	for _, cause := range e.Because {
		if len(cause.Because) == 0 {
			out = append(out, cause)
		}
		out = append(out, rootsOf(cause)...)
	}
	return out
}

// sources returns the declarations by key. Agents without sources have none.
func (g *getter) sources(ctx context.Context, query url.Values) (map[string][]wire.Declaration, error) {
	var all []wire.Declaration
	err := g.s.Get(ctx, "/sources", query, &all)
	if missing(err) {
		err = nil
	}
	out := map[string][]wire.Declaration{}
	for _, d := range all {
		out[d.Key] = append(out[d.Key], d)
	}
	return out, err
}

// missing reports whether the agent lacks what a request asks for.
func missing(err error) bool {
	refused, ok := errors.AsType[session.StatusError](err)
	return ok && refused.Status == http.StatusNotFound
}

// ofModel returns the items of the declared and found values of a model.
func (g *getter) ofModel(ctx context.Context, m wire.Model) (out []item, err error) {
	listed, err := g.listed(ctx, m)
	if err != nil || len(listed) == 0 {
		return nil, err
	}
	declared, err := g.dumped(ctx, m, "NB")
	if err != nil {
		return nil, err
	}
	actual, err := g.dumped(ctx, m, "cached")
	if err != nil {
		return nil, err
	}
	sources, err := g.sources(ctx, url.Values{"key-prefix": {m.KeyPrefix}})
	if err != nil {
		return nil, err
	}
	for _, v := range listed {
		i := g.itemOf(v)
		i.Declared, i.Actual, i.Sources = declared[v.Key], actual[v.Key], sources[v.Key]
		out = append(out, i)
	}
	return out, nil
}

// listed returns the values of a model with their states and causes.
func (g *getter) listed(ctx context.Context, m wire.Model) (out []browse.ListedValue, err error) {
	for offset := 0; ; {
		var part browse.ValuePage
		query := url.Values{"search": {m.KeyPrefix}, "why": {"1"}, "offset": {strconv.Itoa(offset)}, "limit": {strconv.Itoa(explained)}}
		if err := g.s.Get(ctx, "/scheduler/values", query, &part); err != nil {
			return nil, err
		}
		for _, v := range part.Values {
			if strings.HasPrefix(v.Key, m.KeyPrefix) && v.Base == "" {
				out = append(out, v)
			}
		}
		offset += len(part.Values)
		if len(part.Values) == 0 || offset >= part.Total {
			return out, nil
		}
	}
}

// dumped returns the values of a view by key, without their secrets. A model without a descriptor has
// none.
func (g *getter) dumped(ctx context.Context, m wire.Model, view string) (map[string]*wire.Message, error) {
	var all []wire.DumpEntry
	err := g.s.Get(ctx, "/scheduler/dump", url.Values{"key-prefix": {m.KeyPrefix}, "view": {view}, "secrets": {session.Secrets(false)}}, &all)
	if missing(err) {
		err = nil
	}
	out := map[string]*wire.Message{}
	for _, e := range all {
		out[e.Key] = e.Value
	}
	return out, err
}

// marked returns the sources of a value, the highest priority first: "filedb!, etcd*".
func marked(all []wire.Declaration) string {
	var out []string
	for _, d := range all {
		name := d.Source
		if d.Error != "" {
			name += "!"
		}
		if d.Wins {
			name += "*"
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}
