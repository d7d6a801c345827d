package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// memory is the southbound: numbered items, as in VPP.
type memory struct {
	mu     sync.Mutex
	out    io.Writer
	items  map[string]item
	last   uint32
	faults map[string]int // by key: how many more calls will fail
}

// An item is one object of the system, with the number that it got at its creation.
type item struct {
	number uint32
	value  proto.Message
}

// errInjected is the error of verbs that a scenario lets fail.
var errInjected = errors.New("no buffers left")

// newMemory returns an empty southbound, which prints each verb to out.
func newMemory(out io.Writer) *memory {
	return &memory{out: out, items: map[string]item{}, faults: map[string]int{}}
}

// breaks makes the next calls for key fail.
func (m *memory) breaks(key string, times int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[key] = times
}

// forget drops all items, as a crash of VPP does.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.items)
}

// lose drops an item, as somebody with VPP's command line does.
func (m *memory) lose(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.items, key)
}

// say prints a line between those of the verbs.
func (m *memory) say(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fmt.Fprintf(m.out, format+"\n", args...)
}

// Write prints lines of other writers.
func (m *memory) Write(text []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.out.Write(text)
}

// do makes one change, or fails.
func (m *memory) do(verb, key string, change func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults[key] > 0 {
		m.faults[key]--
		fmt.Fprintf(m.out, "    > %s %s: %v\n", verb, key, errInjected)
		return errInjected
	}
	fmt.Fprintf(m.out, "    > %s %s\n", verb, key)
	change()
	return nil
}

// put creates an item, and returns its number: the metadata of the value.
func (m *memory) put(key string, v proto.Message) (number uint32, err error) {
	err = m.do("create", key, func() {
		m.last++
		number = m.last
		m.items[key] = item{number, v}
	})
	return number, err
}

// change replaces an item, which keeps its number.
func (m *memory) change(key string, v proto.Message, number uint32) error {
	return m.do("update", key, func() { m.items[key] = item{number, v} })
}

// drop removes an item.
func (m *memory) drop(key string) error {
	return m.do("delete", key, func() { delete(m.items, key) })
}

// list returns a copy of the items below a prefix.
func (m *memory) list(prefix string) map[string]item {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := maps.Clone(m.items)
	maps.DeleteFunc(out, func(key string, _ item) bool { return !strings.HasPrefix(key, prefix) })
	return out
}

// keep gives d verbs over m and registers it. It has Update only if inPlace is set.
func keep[V proto.Message](s *scheduler.Scheduler, m *memory, d scheduler.Descriptor[V, uint32], inPlace bool) error {
	d.Connection = southbound
	d.Create = func(_ context.Context, key string, v V) (uint32, error) { return m.put(key, v) }
	d.Delete = func(_ context.Context, key string, _ V, _ uint32) error { return m.drop(key) }
	if inPlace {
		d.Update = func(_ context.Context, key string, _, v V, number uint32) (uint32, error) {
			return number, m.change(key, v, number)
		}
	}
	prefix := d.Prefix
	if d.Model.Model != nil {
		prefix = d.Model.Prefix()
	}
	d.Retrieve = func(context.Context, []scheduler.Desired[V]) scheduler.Retrieved[V, uint32] {
		return found[V](m.list(prefix), d.Match)
	}
	_, err := scheduler.Register(s, d)
	return err
}

// southbound is the name of the connection of all verbs.
const southbound = "mock"

// found yields items as Retrieve does, sorted by key.
func found[V proto.Message](items map[string]item, match func(string) bool) scheduler.Retrieved[V, uint32] {
	return func(yield func(scheduler.Found[V, uint32], error) bool) {
		for _, key := range slices.Sorted(maps.Keys(items)) {
			if match != nil && !match(key) {
				continue
			}
			it := items[key]
			if !yield(scheduler.Found[V, uint32]{Key: key, Value: it.value.(V), Meta: it.number}, nil) {
				return
			}
		}
	}
}
