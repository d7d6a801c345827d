package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/scheduler"
)

// A source of the Memory that Options.Sources lacks may be missing by mistake: a typing error in
// the name of its file, or another kind of store for the same label. Nothing can tell that
// from an intention, so its values stay as those of an emptied store do, with its priority. No
// listing will decide about them: only Forget removes them. When the source is configured again,
// its first listing decides as after any restart.

// errUnconfigured is the state of such a source.
var errUnconfigured = errors.New("it held keys at the last run and is not configured now; its values stay until it is configured again or forgotten")

// maxNamed is how many keys a log line names.
const maxNamed = 10

// keepUnconfigured makes a source of each name in the past that no configured source and no layer
// has.
func (o *Orchestrator) keepUnconfigured(past map[string]map[string]*savedKey) {
	for _, name := range slices.Sorted(maps.Keys(past)) {
		if !o.isUnconfigured(name) {
			continue
		}
		l := &source{
			Source:  Source{Name: name, Priority: o.unconfigured(name)},
			entries: newEntries(), saved: past[name], synced: true, unconfigured: true,
		}
		o.rank(append(slices.Clone(o.sources), l))
		o.useSaved(l, "it is not configured now")
		l.saved = nil
		l.publish()
		o.log.Warn("source held keys at the last run and is not configured now; keeping its items until it is forgotten",
			"source", name, "keys", l.entries.Len(), "forgetting_removes", l.firstKeys(),
			"remedy", "configure it again, or run agentctl sources forget "+name)
	}
}

// isUnconfigured reports that a name in the Memory is neither that of a configured source nor that
// of a layer.
func (o *Orchestrator) isUnconfigured(name string) bool {
	return !strings.HasPrefix(name, layerMark) && !slices.ContainsFunc(o.fixed, func(l *source) bool { return l.Name == name })
}

// firstKeys returns the first keys of a source as text, and the number of the others.
func (l *source) firstKeys() string {
	all := l.removeAll()
	var out []string
	for _, e := range all[:min(len(all), maxNamed)] {
		out = append(out, e.Key)
	}
	if more := len(all) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// Forget removes the values of a source that held keys at the last run and is not configured now,
// here and in the Memory, and returns the record of the transaction. The error is ErrNoSource if
// there is no such source, and names those that can be forgotten. Any goroutine may call it, but no
// verb.
func (o *Orchestrator) Forget(ctx context.Context, name string) (*scheduler.Record, error) {
	return o.declared.do(ctx, &request{forget: name, replace: true, done: make(chan struct{})})
}

// serveForget processes a request to forget a source.
func (o *Orchestrator) serveForget(ctx context.Context, r *request) {
	at := slices.IndexFunc(o.sources, func(l *source) bool { return l.unconfigured && l.Name == r.forget })
	if at < 0 {
		r.finish(nil, o.notForgettable(r.forget))
		return
	}
	o.log.Info("source is forgotten; removing its items", "source", r.forget, "keys", o.sources[at].entries.Len())
	o.serve(ctx, o.sources[at], r)
	o.save(maps.All(map[string][]byte{memoryKey(r.forget, dataOf, ""): nil}))
}

// notForgettable returns the error of a request to forget a source that is configured or unknown.
func (o *Orchestrator) notForgettable(name string) error {
	var names []string
	for _, l := range o.sources {
		if l.unconfigured {
			names = append(names, l.Name)
		}
	}
	expected := "there is none"
	if names != nil {
		expected = "expected one of " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%w among those that held keys at the last run and are not configured now: %q; %s", ErrNoSource, name, expected)
}
