package cli

import (
	"fmt"
	"path"

	"github.com/keyplane/keyplane/internal/nearest"
	"github.com/keyplane/keyplane/models"
)

// modelNamed returns the model with this name. The error names the most similar one.
func modelNamed(name string) (*models.Model, error) {
	if m, ok := models.BuiltIn().ByName(name); ok {
		return m, nil
	}
	var names []string
	for _, m := range models.BuiltIn().All() {
		names = append(names, m.Name())
	}
	if near := nearest.Word(name, names); near != "" {
		return nil, fmt.Errorf("no model is called %q: did you mean %s?", name, near)
	}
	return nil, fmt.Errorf("no model is called %q: expected a name such as linux.interfaces.interface", name)
}

// modelsLike returns the models that a pattern matches: a name, a glob, or "all".
func modelsLike(pattern string) (out []*models.Model, err error) {
	if m, ok := models.BuiltIn().ByName(pattern); ok {
		return []*models.Model{m}, nil
	}
	glob := pattern
	if pattern == "all" {
		glob = "*"
	}
	for _, m := range models.BuiltIn().All() {
		fits, err := path.Match(glob, m.Name())
		if err != nil {
			return nil, fmt.Errorf("%q: %w: expected a name, a pattern such as linux.*, or all", pattern, err)
		}
		if fits {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		_, err = modelNamed(pattern)
	}
	return out, err
}

// modelAndName splits a key into model and name. Keys without a model, such as those of
// derived values, have an empty model and are the name.
func modelAndName(key string) (model, name string) {
	m, name, ok := models.BuiltIn().ByKey(key)
	if !ok {
		return "", key
	}
	return m.Name(), name
}
