// Package inspect shows the descriptors of a scheduler, their view of a message, their actual
// values and their running verbs. It is for tools, such as an API for operators; a program
// that only declares values does not need it.
//
// No transaction waits for any function of this package.
//
// A Dump calls Retrieve while transactions run. So it may show a value that is being
// changed, and its result is never used to decide anything.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/internal/actual"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/readback"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A Descriptor is the public description of a descriptor.
type Descriptor struct {
	Name       string
	Prefix     string // of its keys; the whole key if it has only one
	Modelled   bool   // its values are declared under the keys of a model
	Retrieves  bool   // its actual values can be read back
	Connection string
}

// Descriptors returns the registered descriptors, sorted by name.
func Descriptors(s *scheduler.Scheduler) []Descriptor {
	var out []Descriptor
	for _, d := range s.Inside().Registry.All {
		out = append(out, Descriptor{d.Name, d.Prefix, d.Modelled, d.Retrieve != nil, d.Connection.Pool.Connection})
	}
	slices.SortFunc(out, func(a, b Descriptor) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// KindOf returns the name of the descriptor whose values, or properties, have a key; empty: none. While that one cannot
// be read, a missing key is unknown. A key of no descriptor is known to be missing.
func KindOf(s *scheduler.Scheduler, key string) string {
	k := s.Inside().Registry.KindOf(key)
	if k == nil {
		return ""
	}
	return k.(*kind.Descriptor).Name
}

// KindsUnder returns the names of the descriptors whose values, or properties, may have keys with a prefix.
func KindsUnder(s *scheduler.Scheduler, prefix string) (names []string) {
	for k := range s.Inside().Registry.KindsUnder(prefix) {
		names = append(names, k.(*kind.Descriptor).Name)
	}
	return names
}

// Parts is a descriptor's view of a message.
type Parts struct {
	Descriptor   string // empty: no descriptor has the key
	Name         string // the key without the descriptor's prefix
	Dependencies []scheduler.Dependency
	Derived      []string // keys
}

// Message returns the parts of the message m under key. Like Scheduler.Value it is pure, and
// any goroutine may call it; m may also be a derived or an invalid value, or nil.
func Message(s *scheduler.Scheduler, key string, m proto.Message) Parts {
	in := s.Inside()
	d := in.Registry.Of(key)
	if d == nil {
		return Parts{Name: key}
	}
	p := Parts{Descriptor: d.Name, Name: d.NameIn(key)}
	if m == nil || d.Accepts(m) != nil {
		return p
	}
	v := in.Registry.Actual(d, key, m)
	p.Dependencies = in.Dependencies(v.Deps)
	for _, part := range v.Derived() {
		p.Derived = append(p.Derived, part.Key)
	}
	return p
}

// ErrNoRetrieve is returned by Dump if the descriptor is unknown or has no Retrieve.
var ErrNoRetrieve = errors.New("the descriptor has no Retrieve")

// ErrTooLarge is returned by DumpWithin if the values need more memory.
var ErrTooLarge = readback.ErrTooLarge

// Dump reads back the actual values of a descriptor, sorted by key. It changes no state of
// the scheduler.
func Dump(ctx context.Context, s *scheduler.Scheduler, name string) ([]scheduler.Found[proto.Message, any], error) {
	return DumpWithin(ctx, s, name, 0)
}

// DumpWithin is Dump for values that take at most about so many bytes of memory; 0: no bound.
func DumpWithin(ctx context.Context, s *scheduler.Scheduler, name string, most int64) ([]scheduler.Found[proto.Message, any], error) {
	all := s.Inside().Registry.All
	i := slices.IndexFunc(all, func(d *kind.Descriptor) bool { return d.Name == name && d.Retrieve != nil })
	if i < 0 {
		return nil, fmt.Errorf("%q: %w", name, ErrNoRetrieve)
	}
	items, err := actual.NewReader(s, all[i]).Read(ctx, all[i], most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := make([]scheduler.Found[proto.Message, any], len(items))
	for i, it := range items {
		out[i] = scheduler.Found[proto.Message, any](it)
	}
	slices.SortFunc(out, func(a, b scheduler.Found[proto.Message, any]) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// A Verb is a verb that is running.
type Verb struct {
	Key       string
	Name      string // create, update or delete
	For       time.Duration
	Abandoned bool // the scheduler does not wait for it; see scheduler.ErrNoAnswer
}

// String returns the text that explanations and REST show: "create running for 40 s,
// abandoned".
func (v Verb) String() string {
	text := fmt.Sprintf("%s running for %s", v.Name, executor.Seconds(v.For.Truncate(time.Second)))
	if v.Abandoned {
		text += ", abandoned"
	}
	return text
}

// Running returns the running verb of key, if there is one.
func Running(s *scheduler.Scheduler, key string) (Verb, bool) {
	r, ok := s.Inside().Executor.Running(key)
	if !ok {
		return Verb{}, false
	}
	name := map[value.Verb]string{value.Create: "create", value.Update: "update", value.Delete: "delete"}[r.Verb]
	return Verb{Key: key, Name: name, For: time.Since(r.Since), Abandoned: r.Abandoned}, true
}
