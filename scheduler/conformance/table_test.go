package conformance_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

type (
	route  = *l3.Route
	handle = int
	found  = scheduler.Found[route, handle]
)

// table is a southbound that keeps routes in memory, each with a handle without
// which it is neither changed nor removed.
type table struct {
	mu     sync.Mutex
	routes map[string]found
	last   handle
	broken bool // it cannot be read
}

var (
	errHandle = errors.New("no such handle")
	errBroken = errors.New("the table cannot be read")
)

func (s *table) create(_ context.Context, key string, v route) (handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.routes[key].Meta
	if h == 0 {
		s.last++
		h = s.last
	}
	s.routes[key] = found{Key: key, Value: v, Meta: h}
	return h, nil
}

func (s *table) createAll(ctx context.Context, values []scheduler.Desired[route]) []scheduler.Created[handle] {
	out := make([]scheduler.Created[handle], len(values))
	for i, w := range values {
		out[i].Meta, out[i].Err = s.create(ctx, w.Key, w.Value)
	}
	return out
}

func (s *table) update(_ context.Context, key string, _, v route, h handle) (handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.routes[key].Meta != h {
		return 0, errHandle
	}
	s.routes[key] = found{Key: key, Value: v, Meta: h}
	return h, nil
}

func (s *table) delete(_ context.Context, key string, _ route, h handle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.routes[key]; ok && at.Meta != h {
		return errHandle
	}
	delete(s.routes, key)
	return nil
}

func (s *table) retrieve(context.Context, []scheduler.Desired[route]) iter.Seq2[found, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, broken := slices.Collect(maps.Values(s.routes)), s.broken
	return func(yield func(found, error) bool) {
		if broken {
			yield(found{}, errBroken)
			return
		}
		for _, f := range all {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func (s *table) retrieveSome(_ context.Context, keys []string, _ []scheduler.Desired[route]) iter.Seq2[found, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var some []found
	for _, key := range keys {
		if f, ok := s.routes[key]; ok {
			some = append(some, f)
		}
	}
	return func(yield func(found, error) bool) {
		for _, f := range some {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func validate(_ string, v route) error {
	var wrong []error
	if v.GetOutgoingInterface() == "" {
		wrong = append(wrong, &models.FieldError{Field: "outgoing_interface", Expected: "the name of an interface"})
	}
	if v.GetMetric() > 1000 {
		wrong = append(wrong, &models.FieldError{Field: "metric", Value: v.GetMetric(), Expected: "at most 1000"})
	}
	return errors.Join(wrong...)
}

func (s *table) descriptor() scheduler.Descriptor[route, handle] {
	return scheduler.Descriptor[route, handle]{
		Name: "route", Model: models.For[route](),
		Validate:   validate,
		Equivalent: func(_ string, a, b route) bool { return a.Metric == b.Metric && a.Scope == b.Scope },
		Recreate:   func(_ string, a, b route, _ handle) bool { return a.Scope != b.Scope },
		Dependencies: func(_ string, v route) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "interface-is-up", Key: "link/" + v.OutgoingInterface}}
		},
		Derived: func(_ string, v route) []scheduler.KeyValue {
			return []scheduler.KeyValue{{Key: "reachable/" + v.DstNetwork, Value: v}}
		},
		Create: s.create, CreateAll: s.createAll, Update: s.update, Delete: s.delete, Retrieve: s.retrieve, RetrieveSome: s.retrieveSome,
	}
}

func to(dst string, change func(route)) route {
	r := &l3.Route{DstNetwork: dst, OutgoingInterface: "eth0"}
	if change != nil {
		change(r)
	}
	return r
}

// suite is that of the table's descriptor, after corrupt.
func suite(corrupt func(*table, *scheduler.Descriptor[route, handle])) conformance.Suite[route, handle] {
	const dst = "10.1.0.0/16"
	var last *table
	return conformance.Suite[route, handle]{
		Break: func(*testing.T) {
			last.mu.Lock()
			defer last.mu.Unlock()
			last.broken = true
		},
		New: func(*testing.T) scheduler.Descriptor[route, handle] {
			s := &table{routes: map[string]found{}}
			last = s
			d := s.descriptor()
			corrupt(s, &d)
			return d
		},
		Values: []scheduler.Desired[route]{{Value: to(dst, nil)}, {Value: to("10.2.0.0/16", nil)}},
		Changes: []conformance.Change[route]{
			{Name: "metric", From: to(dst, nil), To: to(dst, func(r route) { r.Metric = 5 })},
			{Name: "scope", From: to(dst, nil), To: to(dst, func(r route) { r.Scope = l3.Route_LINK }), How: conformance.Recreated},
			{Name: "gateway", From: to(dst, nil), To: to(dst, func(r route) { r.GwAddr = "10.0.0.1" }), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[route]{
			{Name: "metric", Value: to(dst, func(r route) { r.Metric = 1001 }), Fields: []string{"metric"}},
			{Name: "both", Value: &l3.Route{Metric: 1001}, Fields: []string{"metric", "outgoing_interface"}},
		},
	}
}

func TestTable(t *testing.T) {
	conformance.Run(t, suite(func(*table, *scheduler.Descriptor[route, handle]) {}))
}

// Values that nobody declares are only found.
func TestNoticed(t *testing.T) {
	s := suite(func(s *table, d *scheduler.Descriptor[route, handle]) {
		s.routes["x"] = found{Value: to("10.9.0.0/16", nil)}
		d.Create, d.CreateAll, d.Update, d.Delete, d.Equivalent = nil, nil, nil, nil, nil
	})
	s.Changes = nil
	conformance.Run(t, s)
}

// What cannot be read back is checked for the rest.
func TestBlind(t *testing.T) {
	conformance.Run(t, suite(func(_ *table, d *scheduler.Descriptor[route, handle]) { d.Retrieve, d.RetrieveSome = nil, nil }))
}

// Keys that no model describes are given.
func TestWithoutModel(t *testing.T) { conformance.Run(t, withoutModel()) }

func withoutModel() conformance.Suite[route, handle] {
	s := suite(func(_ *table, d *scheduler.Descriptor[route, handle]) {
		d.Model, d.Prefix = models.Of[route]{}, "derived/"
	})
	for i := range s.Values {
		s.Values[i].Key = "derived/" + strings.Repeat("x", i+1)
	}
	for i := range s.Changes {
		s.Changes[i].Key = s.Values[0].Key
	}
	return s
}
