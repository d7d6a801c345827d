package cli

import (
	"fmt"
	"path"

	"github.com/keyplane/keyplane/models"
)

// modelNamed finds a model, or says which one was probably meant.
func modelNamed(name string) (*models.Model, error) {
	if m, ok := models.ByName(name); ok {
		return m, nil
	}
	var names []string
	for _, m := range models.All() {
		names = append(names, m.Name())
	}
	if near := models.Nearest(name, names); near != "" {
		return nil, fmt.Errorf("no model is called %q: did you mean %s?", name, near)
	}
	return nil, fmt.Errorf("no model is called %q: expected a name such as linux.interfaces.interface", name)
}

// modelsLike are those that a pattern names: a name, a glob, or all.
func modelsLike(pattern string) (out []*models.Model, err error) {
	if m, ok := models.ByName(pattern); ok {
		return []*models.Model{m}, nil
	}
	glob := pattern
	if pattern == "all" {
		glob = "*"
	}
	for _, m := range models.All() {
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

// modelAndName tell whose value a key is, and which; what no model describes, as
// derived values, is all name.
func modelAndName(key string) (model, name string) {
	m, name, ok := models.ByKey(key)
	if !ok {
		return "", key
	}
	return m.Name(), name
}
