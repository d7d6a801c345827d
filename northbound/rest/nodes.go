package rest

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/internal/timeline"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// timelines returns the timelines of the keys that keep accepts, up to now. The statuses
// are read before the history: the other order could miss an operation between the two.
func (h *handler) timelines(keep func(key string) bool) *timeline.Timelines {
	statuses := h.sched.Statuses("")
	return timeline.New(statuses, h.sched.History(), keep)
}

// keyTimeline answers the revisions of a key or, with time, the revision at that
// moment (null if there was none).
func (h *handler) keyTimeline(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	key, err := q.Required("key", "the key of a value")
	if err != nil {
		return err
	}
	key = h.short(key)
	never := time.Time{}
	t, err := q.Moment("time", never)
	if err != nil {
		return err
	}
	c := h.timelinesOf(key)
	if !t.Equal(never) {
		if r := c.At(key, t); r != nil {
			return reply.JSON(w, h.node(c, key, r, t))
		}
		return reply.JSON(w, nil)
	}
	return reply.Array(w, reply.Mapped(c.Revisions[key], func(r timeline.Revision) wire.Node { return h.node(c, key, &r, r.Since) }))
}

// timelinesOf returns the timelines of key and of all keys that its revisions relate
// to. Converting the whole history would cost much more.
func (h *handler) timelinesOf(key string) *timeline.Timelines {
	own := h.timelines(func(k string) bool { return k == key })
	var deps []scheduler.Dependency
	related := map[string]bool{key: true}
	for _, r := range own.Revisions[key] {
		a := inspect.Message(h.sched, key, r.Value)
		deps = append(deps, a.Dependencies...)
		for _, d := range a.Derived {
			related[d] = true
		}
	}
	return h.timelines(func(k string) bool {
		return related[k] || slices.ContainsFunc(deps, func(d scheduler.Dependency) bool { return d.MetBy(k) })
	})
}

// snapshot answers the nodes of one moment. The moment may be in the past, as far back as
// the history reaches.
func (h *handler) snapshot(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	t, err := q.Moment("time", time.Now())
	if err != nil {
		return err
	}
	return reply.Array(w, h.nodes(h.timelines(all), t))
}

// all accepts every key.
func all(string) bool { return true }

// nodes yields the nodes that existed at a moment, sorted by key.
func (h *handler) nodes(c *timeline.Timelines, t time.Time) iter.Seq[wire.Node] {
	return func(yield func(wire.Node) bool) {
		for _, key := range c.Keys {
			if r := c.At(key, t); r != nil && !yield(h.node(c, key, r, t)) {
				return
			}
		}
	}
}

// node converts a revision, with its relations at a moment. Relations are those at the
// moment t, so a picture of the past shows which values met a dependency then. Secrets are
// never in it.
func (h *handler) node(c *timeline.Timelines, key string, r *timeline.Revision, t time.Time) wire.Node {
	a := inspect.Message(h.sched, key, r.Value)
	n := wire.Node{
		Since: r.Since, Until: r.Until, Key: key, Label: a.Name, Value: wire.MessageOf(models.Redacted(r.Value)),
		Flags: flagsOf(r, a), MetadataFields: metadataFields(r.Meta), Targets: []wire.Target{},
	}
	for _, d := range a.Dependencies {
		n.Targets = append(n.Targets, wire.Target{Relation: "depends-on", Label: d.Label, ExpectedKey: expected(d), MatchingKeys: c.Satisfying(d, t)})
	}
	for _, key := range a.Derived {
		part := scheduler.Dependency{Key: key}
		n.Targets = append(n.Targets, wire.Target{Relation: "derives", Label: key, ExpectedKey: key, MatchingKeys: c.Satisfying(part, t)})
	}
	return n
}

// expected returns a dependency as text: a key, or keys or prefixes of which any key is
// enough.
func expected(d scheduler.Dependency) string {
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

// maxPrefixes is the number of prefixes in one request.
const maxPrefixes = 1000

// underAny returns a filter for keys with one of the prefixes; without prefixes it
// accepts all keys. The filter runs for each operation in the history, so its cost
// must not grow with the number of prefixes: it searches in a sorted list.
func (h *handler) underAny(prefixes []string) (keep func(key string) bool, err error) {
	if n := len(prefixes); n > maxPrefixes {
		return nil, fmt.Errorf("argument prefix is given %d times; at most %d are allowed", n, maxPrefixes)
	}
	if len(prefixes) == 0 {
		return all, nil
	}
	sorted := make([]string, len(prefixes))
	for i, p := range prefixes {
		sorted[i] = h.short(p)
	}
	slices.Sort(sorted)
	apart := sorted[:1] // none of them is a prefix of another, so one comparison is enough
	for _, p := range sorted[1:] {
		if !strings.HasPrefix(p, apart[len(apart)-1]) {
			apart = append(apart, p)
		}
	}
	return func(key string) bool {
		i, found := slices.BinarySearch(apart, key)
		return found || i > 0 && strings.HasPrefix(key, apart[i-1])
	}, nil
}

// flagStats answers how often each value of a flag occurs in all revisions.
func (h *handler) flagStats(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	names := wire.FlagNames()
	flag, err := q.Required("flag", "one of "+strings.Join(names, ", "))
	if err != nil {
		return err
	}
	if !slices.Contains(names, flag) {
		return fmt.Errorf("argument flag=%q: expected one of %s", flag, strings.Join(names, ", "))
	}
	keep, err := h.underAny(q.Values["prefix"])
	if err != nil {
		return reply.BadRequest(err)
	}
	c := h.timelines(keep)
	stats := wire.FlagStats{PerValueCount: map[string]int{}}
	for _, key := range c.Keys {
		for _, r := range c.Revisions[key] {
			if value, ok := flagsOf(&r, inspect.Message(h.sched, key, nil)).Get(flag); ok {
				stats.TotalCount++
				stats.PerValueCount[value]++
			}
		}
	}
	return reply.JSON(w, stats)
}
