package models

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
)

// Decode parses what a store holds under key, which is without the agent's own
// prefix: it finds the model, parses the JSON, and makes sure that the content
// makes exactly this key. Errors are [ErrNoModel], [ErrTooLarge], [ErrNotJSON],
// [ErrKeyMismatch], and a [FieldError] for each field found wrong; the text is for people,
// of bounded length, and the same every time. Where only the key is wrong, or the fields
// that it is made of, the message is returned too, so that the others can be looked at.
func Decode(key string, data []byte) (proto.Message, error) {
	m, _, ok := ByKey(key)
	if !ok {
		return nil, unknownKey(cut(key, longestKey))
	}
	v, err := m.Unmarshal(data)
	if err != nil {
		return v, err
	}
	made, err := m.Key(v)
	if err != nil {
		return v, err
	}
	if made != key {
		return v, m.mismatch(key, made, v)
	}
	return v, nil
}

// longestKey is how much of a key an error shows.
const longestKey = 120

// An unknownKey, cut to longestKey, is of no model. Which it could have meant takes
// long to find out, so that waits until somebody reads it.
type unknownKey string

func (k unknownKey) Error() string {
	if m, ok := meant(string(k)); ok {
		return fmt.Sprintf("%v: key %q: did you mean %q?", ErrNoModel, string(k), hint(m))
	}
	return fmt.Sprintf("%v: key %q: expected one that begins like %q", ErrNoModel, string(k), "config/linux/interfaces/v2/interface/")
}

func (unknownKey) Unwrap() error { return ErrNoModel }

// hint is what the keys of m look like.
func hint(m *Model) string {
	if m.Singleton() {
		return m.prefix
	}
	return m.prefix + "<name>"
}

// meant finds the model whose prefix is like the beginning of key. A key that
// still has an agent's prefix is looked at from where the class begins.
func meant(key string) (*Model, bool) {
	if at := strings.Index(key, "config/"); at > 0 {
		key = key[at:]
	}
	elements := strings.Split(key, "/")
	var words []string
	byWord := map[string]*Model{}
	for _, m := range models().all {
		prefix := strings.TrimSuffix(m.prefix, "/")
		n := min(strings.Count(prefix, "/")+1, len(elements))
		if distance(plain(strings.Join(elements[:n], "/")), plain(prefix)) <= len(prefix)/8 {
			words = append(words, prefix)
			byWord[prefix] = m
		}
	}
	slices.SortStableFunc(words, func(a, b string) int {
		return distance(key, a) - distance(key, b)
	})
	if len(words) == 0 {
		return nil, false
	}
	return byWord[words[0]], true
}
