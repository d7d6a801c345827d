package models

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/nearest"
)

// Decode parses the value that a store holds under key, without the agent's prefix. It
// finds the model, parses the JSON, and checks that the content makes exactly this key.
//
// Errors are [ErrNoModel], [ErrTooLarge], [ErrNotJSON], [ErrKeyMismatch], and a
// [FieldError] for each invalid field, as data spells it. Their text is for people, bounded in length, and
// deterministic. If only the key is wrong, or the fields that make it, the message is
// returned too, so that the other fields can be validated.
func (r *Registry) Decode(key string, data []byte) (proto.Message, error) {
	m, _, ok := r.ByKey(key)
	if !ok {
		return nil, &unknownKey{cut(key, longestKey), r}
	}
	v, err := m.Unmarshal(data)
	if err != nil {
		return v, err
	}
	made, err := m.Key(v)
	if err != nil {
		SpellFields(err, data)
		return v, err
	}
	if made != key {
		err := m.mismatch(key, made, v)
		SpellFields(err, data)
		return v, err
	}
	return v, nil
}

// longestKey is the maximum length of a key in an error.
const longestKey = 120

// An unknownKey is the error for a key without a model. The search for a similar prefix is
// slow, so it runs only when the error is printed.
type unknownKey struct {
	key string
	in  *Registry
}

// Error implements error. It names the most similar model.
func (k *unknownKey) Error() string {
	if m, ok := k.in.suggestion(k.key); ok {
		return fmt.Sprintf("%v: key %q: did you mean %q?", ErrNoModel, k.key, hint(m))
	}
	return fmt.Sprintf("%v: key %q: expected one that begins like %q", ErrNoModel, k.key, "config/linux/interfaces/v2/interface/")
}

// Unwrap returns ErrNoModel.
func (*unknownKey) Unwrap() error { return ErrNoModel }

// hint returns an example of the keys of m.
func hint(m *Model) string {
	if m.Singleton() {
		return m.prefix
	}
	return m.prefix + "<name>"
}

// suggestion returns the model with a prefix similar to the start of key. In a key
// with an agent's prefix, the search starts at the class.
func (r *Registry) suggestion(key string) (*Model, bool) {
	if at := strings.Index(key, "config/"); at > 0 {
		key = key[at:]
	}
	elements := strings.Split(key, "/")
	var words []string
	byWord := map[string]*Model{}
	for _, m := range r.all {
		prefix := strings.TrimSuffix(m.prefix, "/")
		n := min(strings.Count(prefix, "/")+1, len(elements))
		if nearest.Distance(strings.Join(elements[:n], "/"), prefix) <= len(prefix)/8 {
			words = append(words, prefix)
			byWord[prefix] = m
		}
	}
	slices.SortStableFunc(words, func(a, b string) int {
		return nearest.Distance(key, a) - nearest.Distance(key, b)
	})
	if len(words) == 0 {
		return nil, false
	}
	return byWord[words[0]], true
}
