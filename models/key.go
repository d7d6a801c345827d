package models

import (
	"fmt"
	"path"
	"strings"

	"google.golang.org/protobuf/proto"
)

// KeyOf returns the key of the value with the given name. The key is cleaned like a path:
// double slashes collapse, "." and ".." resolve, a trailing slash vanishes. A singleton
// has one key for any name.
func (m *Model) KeyOf(name string) string {
	if m.Singleton() {
		return m.prefix
	}
	return path.Clean(m.prefix + name)
}

// NameOf returns the name in key, and whether key belongs to this model.
func (m *Model) NameOf(key string) (string, bool) {
	if m.Singleton() {
		return "", key == m.prefix
	}
	name, ok := strings.CutPrefix(key, m.prefix)
	if !ok || name == "" {
		return "", false
	}
	return name, true
}

// Key returns the key that the content of v makes. The error is a [FieldError], or several
// joined, for fields of the name that are empty or invalid, and ErrNoModel if v does not
// belong to this model.
func (m *Model) Key(v proto.Message) (string, error) {
	if !m.is(v) {
		return "", fmt.Errorf("%w: %T is not a value of %s", ErrNoModel, v, m.Name())
	}
	if m.Singleton() {
		return m.prefix, nil
	}
	name := m.name(v)
	if strings.Contains(name, invalid) {
		if err := m.unparsed(v); err != nil {
			return "", err
		}
	}
	key := path.Clean(m.prefix + name)
	if len(key) <= len(m.prefix) || !strings.HasPrefix(key, m.prefix) {
		return "", m.noName(v)
	}
	return key, nil
}
