// Package nodes describes values with their relations, now or at a moment of the past: what they
// depend on, what is derived from them, and the flags of each revision. Clients of existing
// deployments know the names of relations and flags.
//
//	past := nodes.Of(sched, nodes.All)
//	reply.Array(w, past.At(time.Now()))
//
// The past is as old as the history of transactions. Secrets are never in a node.
package nodes

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/internal/timeline"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// Nodes are the revisions of some values up to one moment. They do not change.
type Nodes struct {
	sched *scheduler.Scheduler // describes a message: its name, its dependencies and derived values
	past  *timeline.Timelines
}

// Of returns the nodes of the keys that keep accepts, up to now. The statuses are read before
// the history: the other order could miss an operation between the two.
func Of(s *scheduler.Scheduler, keep func(key string) bool) Nodes {
	statuses := s.Statuses("")
	return Nodes{s, timeline.New(statuses, s.History(), keep)}
}

// Around returns the nodes of key and of all keys that its revisions relate to. Converting the
// whole history would cost much more.
func Around(s *scheduler.Scheduler, key string) Nodes {
	own := Of(s, func(k string) bool { return k == key })
	var deps []scheduler.Dependency
	related := map[string]bool{key: true}
	for _, r := range own.past.Revisions[key] {
		a := inspect.Message(s, key, r.Value)
		deps = append(deps, a.Dependencies...)
		for _, d := range a.Derived {
			related[d] = true
		}
	}
	return Of(s, func(k string) bool {
		return related[k] || slices.ContainsFunc(deps, func(d scheduler.Dependency) bool { return d.MetBy(k) })
	})
}

// One returns the node of key at a moment, or false if there was none.
func (n Nodes) One(key string, t time.Time) (wire.Node, bool) {
	r := n.past.At(key, t)
	if r == nil {
		return wire.Node{}, false
	}
	return n.node(key, r, t), true
}

// Revisions yields all nodes of one key, oldest first. The relations of each are those of its
// beginning.
func (n Nodes) Revisions(key string) iter.Seq[wire.Node] {
	return reply.Mapped(n.past.Revisions[key], func(r timeline.Revision) wire.Node { return n.node(key, &r, r.Since) })
}

// At yields the nodes that existed at a moment, sorted by key.
func (n Nodes) At(t time.Time) iter.Seq[wire.Node] {
	return func(yield func(wire.Node) bool) {
		for _, key := range n.past.Keys {
			if r := n.past.At(key, t); r != nil && !yield(n.node(key, r, t)) {
				return
			}
		}
	}
}

// node converts a revision, with its relations at a moment. Relations are those at the
// moment t, so a picture of the past shows which values met a dependency then. Secrets are
// never in it.
func (n Nodes) node(key string, r *timeline.Revision, t time.Time) wire.Node {
	a := inspect.Message(n.sched, key, r.Value)
	out := wire.Node{
		Since: r.Since, Until: r.Until, Key: key, Label: a.Name, Value: wire.MessageOf(models.Redacted(r.Value)),
		Flags: flagsOf(r, a), MetadataFields: metadataFields(r.Meta), Targets: []wire.Target{},
	}
	for _, d := range a.Dependencies {
		out.Targets = append(out.Targets, wire.Target{Relation: "depends-on", Label: d.Label, ExpectedKey: Expected(d), MatchingKeys: n.past.Satisfying(d, t)})
	}
	for _, key := range a.Derived {
		part := scheduler.Dependency{Key: key}
		out.Targets = append(out.Targets, wire.Target{Relation: "derives", Label: key, ExpectedKey: key, MatchingKeys: n.past.Satisfying(part, t)})
	}
	return out
}

// Expected returns a dependency as text: a key, or keys or prefixes of which any key is
// enough.
func Expected(d scheduler.Dependency) string {
	if len(d.Keys) > 0 {
		return strings.Join(d.Keys, " | ")
	}
	if d.Key != "" || len(d.Prefixes) == 0 {
		return d.Key
	}
	return strings.Join(d.Prefixes, "* | ") + "*"
}

// flagsOf returns the flags of a revision, in the order of wire.FlagNames. Clients of
// existing deployments look for these names.
func flagsOf(r *timeline.Revision, a inspect.Parts) wire.Flags {
	fs := wire.Flags{}
	add := func(is bool, name, value string) {
		if is {
			fs = append(fs, wire.Flag{Name: name, Value: value})
		}
	}
	add(r.InTxn, wire.LastUpdate, fmt.Sprintf("TXN-%d", r.Txn))
	add(r.Err != nil, wire.Error, reply.ErrorText(r.Err))
	add(true, wire.ValueState, r.State.String())
	add(!r.Applied, wire.Unavailable, "")
	add(a.Descriptor != "", wire.Descriptor, a.Descriptor)
	add(r.Base != "", wire.Derived, r.Base)
	return fs
}

// FlagStats returns how often each value of a flag occurs in all revisions.
func (n Nodes) FlagStats(flag string) wire.FlagStats {
	out := wire.FlagStats{PerValueCount: map[string]int{}}
	for _, key := range n.past.Keys {
		a := inspect.Message(n.sched, key, nil)
		for _, r := range n.past.Revisions[key] {
			if value, ok := flagsOf(&r, a).Get(flag); ok {
				out.TotalCount++
				out.PerValueCount[value]++
			}
		}
	}
	return out
}

// Changed returns the nodes that a transaction changed and their neighbours, as of its end, and the
// changed keys.
func (n Nodes) Changed(r *scheduler.Record) (all []wire.Node, changed map[string]bool) {
	changed = map[string]bool{}
	for _, op := range r.Executed.All() {
		changed[op.Key] = true
	}
	all = slices.Collect(n.At(r.Stop))
	// In both directions: a neighbour may depend on a changed value, or the other way
	// round.
	near := map[string]bool{}
	for _, one := range all {
		for _, key := range neighbours(one) {
			near[key] = near[key] || changed[one.Key]
			near[one.Key] = near[one.Key] || changed[key]
		}
	}
	return slices.DeleteFunc(all, func(one wire.Node) bool { return !changed[one.Key] && !near[one.Key] }), changed
}

// neighbours returns the keys of the values that n relates to.
func neighbours(n wire.Node) (out []string) {
	for _, t := range n.Targets {
		out = append(out, t.MatchingKeys...)
	}
	return out
}
