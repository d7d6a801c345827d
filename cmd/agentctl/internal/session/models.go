package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/internal/nearest"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A Catalogue is the list of an agent's models, sorted by name. An agent may have models that
// agentctl was not built with.
type Catalogue []wire.Model

// Classes of models: those of declared values, and those of counters.
const (
	ConfigClass  = "config"
	MetricsClass = "metrics"
)

// Models asks the agent for its models of a class, or for all of them. Agents of earlier
// releases do not answer that; they have the built-in ones.
func (s *Session) Models(ctx context.Context, class string) (out Catalogue, err error) {
	err = s.Get(ctx, "/info/models", url.Values{"class": {class}}, &out)
	if refused, ok := errors.AsType[StatusError](err); ok && refused.Status == http.StatusNotFound {
		return BuiltIn(class), nil
	}
	return out, err
}

// BuiltIn returns the models of a class that agentctl was built with, or all of them if it is
// empty.
func BuiltIn(class string) (out Catalogue) {
	for _, m := range models.BuiltIn().All() {
		if class != "" && class != m.Class {
			continue
		}
		one := wire.Model{
			Name: m.Name(), Class: m.Class, ProtoName: m.ProtoName(), ProtoFile: m.ProtoFile(), KeyPrefix: m.Prefix(),
			NameTemplate: m.NameTemplate(), KeyFields: m.KeyFields(),
		}
		if group, field := m.ConfigField(); field != "" {
			one.ConfigField = group + "." + field
		}
		out = append(out, one)
	}
	return out
}

// Named returns the model with this name, or the only one with this short name. The error names the most similar one.
func (c Catalogue) Named(name string) (wire.Model, error) {
	var names []string
	for _, m := range c {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	for _, m := range c { // after all whole names: they say more
		names = append(names, ShortNames(m)...)
	}
	switch short := c.Short(name); len(short) {
	case 0:
	case 1:
		return short[0], nil
	default:
		return wire.Model{}, Usagef("several models have the short name %q: expected one of %s", name, strings.Join(short.names(), ", "))
	}
	if near := nearest.Word(name, names); near != "" {
		return wire.Model{}, Usagef("no model is called %q: did you mean %s?", name, near)
	}
	return wire.Model{}, Usagef("no model is called %q: expected %s", name, c.example())
}

// example names what Named expects, for its error.
func (c Catalogue) example() string {
	if len(c) == 1 {
		return c[0].Name
	}
	return "a name such as linux.interfaces.interface"
}

// names returns the names of the models.
func (c Catalogue) names() (out []string) {
	for _, m := range c {
		out = append(out, m.Name)
	}
	return out
}

// Short returns the models with a short name: the last word of their name, or their field in files, which is its
// plural in most cases. "route" and "routes" are linux.l3.route and vpp.route, "linux.routes" is the first of them. Small and
// capital letters, dashes and underscores make no difference.
func (c Catalogue) Short(name string) (out Catalogue) {
	for _, m := range c {
		if slices.ContainsFunc(ShortNames(m), func(short string) bool { return nearest.Distance(short, name) == 0 }) {
			out = append(out, m)
		}
	}
	return out
}

// ShortNames returns the short names of a model: those that other models may have too, and then the same with the first
// word of the model before them, such as linux.routes.
func ShortNames(m wire.Model) []string {
	first, _, _ := strings.Cut(m.Name, ".")
	kind := m.Name[strings.LastIndexByte(m.Name, '.')+1:]
	group, field, inFiles := strings.Cut(m.ConfigField, ".")
	if !inFiles {
		return []string{kind, first + "." + kind}
	}
	group = strings.TrimSuffix(group, "Config")
	return []string{field, kind, group + "." + field, first + "." + kind}
}

// Like returns the models that a pattern matches: a name, a short name, a glob, or "all".
func (c Catalogue) Like(pattern string) (out Catalogue, err error) {
	glob := pattern
	if pattern == "all" {
		glob = "*"
	}
	if err := checkPattern(glob); err != nil {
		return nil, err
	}
	for _, m := range c {
		if fits, _ := path.Match(glob, m.Name); fits {
			out = append(out, m)
		}
	}
	if len(out) == 0 && pattern != "all" {
		if out = c.Short(pattern); len(out) == 0 {
			_, err = c.Named(pattern)
		}
	}
	return out, err
}

// Patterns returns a check that all arguments are patterns. If missing is not empty, it is the
// error of a command line without any.
func Patterns(missing string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 && missing != "" {
			return errors.New(missing)
		}
		for _, pattern := range args {
			if err := checkPattern(pattern); err != nil {
				return err
			}
		}
		return nil
	}
}

// checkPattern refuses a pattern that can match nothing.
func checkPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("%q: %w: expected a name, a pattern such as linux.*, or all", pattern, err)
	}
	return nil
}

// ModelAndName splits a key into model and name. Keys without a model, such as those of
// derived values, have an empty model and are the name.
func (c Catalogue) ModelAndName(key string) (model, name string) {
	for _, m := range c {
		if name, ok := strings.CutPrefix(key, m.KeyPrefix); ok && (name == "") == (m.NameTemplate == "") {
			return m.Name, name
		}
	}
	return "", key
}
