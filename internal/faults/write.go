package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
)

// Write makes changes at once, and repeats the write until the store accepts it.
func (r *Run) Write(changes ...history.Change) {
	r.Helper()
	begun := time.Now()
	if err := r.tryUntil(func(ctx context.Context) error { return r.Store.Write(ctx, changes...) }); err != nil {
		r.Fatalf("writing %.80q and %d others: %.300s", changes[0].Key, len(changes)-1, err)
	}
	r.wrote(begun, changes...)
}

// wrote notes an accepted write in the history and in the test's own record. Garbage
// enters holds only: the agent keeps the valid text before it.
func (r *Run) wrote(begun time.Time, changes ...history.Change) {
	r.record.Write(begun, false, changes...)
	for _, c := range changes {
		switch {
		case c.Text == "":
			delete(r.holds, c.Key)
			delete(r.valid, c.Key)
		case strings.HasPrefix(c.Text, stores.RawMark):
			r.holds[c.Key] = c.Text
		default:
			r.holds[c.Key], r.valid[c.Key] = c.Text, c.Text
		}
	}
}

// tryUntil repeats do until it succeeds, within the bound.
func (r *Run) tryUntil(do func(context.Context) error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.Now().Add(r.Scale.Bound)
	for {
		// A write to a stopped server would wait until the server continues.
		ctx, cancel := context.WithTimeout(r.ctx, 5*time.Second)
		err := do(ctx)
		cancel()
		if err == nil || r.ctx.Err() != nil || time.Now().After(late) {
			return err
		}
		<-tick.C
	}
}

// Put gives each name a new text, in writes as large as the store allows.
func (r *Run) Put(names ...string) {
	r.Helper()
	var changes []history.Change
	for _, name := range names {
		changes = append(changes, history.Change{Key: name, Text: r.text()})
	}
	r.inGroups(changes)
}

// Delete removes names, in writes as large as the store allows.
func (r *Run) Delete(names ...string) {
	r.Helper()
	var changes []history.Change
	for _, name := range names {
		changes = append(changes, history.Change{Key: name})
	}
	r.inGroups(changes)
}

// inGroups splits changes by home, in the order of the homes, and then into writes of at
// most Store.AtOnce changes.
func (r *Run) inGroups(changes []history.Change) {
	r.Helper()
	byHome := map[string][]history.Change{}
	for _, c := range changes {
		byHome[r.home(c.Key)] = append(byHome[r.home(c.Key)], c)
	}
	for _, home := range slices.Sorted(maps.Keys(byHome)) {
		for group := range slices.Chunk(byHome[home], r.Store.AtOnce) {
			r.Write(group...)
		}
	}
}

// home returns the home of a name: "{3}" of "{3}if17".
func (r *Run) home(name string) string {
	if r.Store.Homes < 2 {
		return ""
	}
	home, _, _ := strings.Cut(name, "if")
	return home
}

// name returns the i-th name.
func (r *Run) name(i int) string {
	if r.Store.Homes < 2 {
		return fmt.Sprintf("if%d", i)
	}
	return fmt.Sprintf("{%d}if%d", i%r.Store.Homes, i)
}

// names returns the first n names.
func (r *Run) names(n int) (out []string) {
	for i := range n {
		out = append(out, r.name(i))
	}
	return out
}

// some returns five random names of the store. A tenth of all names is never among them,
// so these stay for the whole life.
func (r *Run) some() []string {
	var all []string
	// The first tenth is never chosen.
	for i := r.Scale.Keys / 10; i < r.Scale.Keys; i++ {
		if name := r.name(i); r.holds[name] != "" {
			all = append(all, name)
		}
	}
	r.Rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(5, len(all))]
}

// churn makes n random writes: puts, deletes, a delete with a put, and groups of them. It
// never deletes a certain tenth of the names.
func (r *Run) churn(n int) {
	r.Helper()
	for range n {
		name := r.name(r.Rand.IntN(r.Scale.Keys))
		free := !slices.Contains(r.names(r.Scale.Keys/10), name)
		switch dice := r.Rand.IntN(10); {
		// Two of ten writes delete, one deletes and puts again, two change a group, and
		// the rest update.
		case dice < 2 && free:
			r.Write(history.Change{Key: name})
		case dice < 3 && free:
			r.Write(history.Change{Key: name})
			r.Write(history.Change{Key: name, Text: r.text()})
		case dice < 5:
			r.Write(r.group(name)...)
		default:
			r.Write(history.Change{Key: name, Text: r.text()})
		}
	}
}

// group returns changes of up to five names of one home.
func (r *Run) group(first string) (out []history.Change) {
	used := map[string]bool{}
	for _, i := range append([]int{-1}, r.Rand.Perm(r.Scale.Keys)...) {
		name := first
		if i >= 0 {
			name = r.name(i)
		}
		if used[name] || r.home(name) != r.home(first) {
			continue
		}
		used[name] = true
		c := history.Change{Key: name, Text: r.text()}
		// A third of the group is deleted.
		if i >= r.Scale.Keys/10 && r.Rand.IntN(3) == 0 {
			c.Text = ""
		}
		out = append(out, c)
		if len(out) == min(5, r.Store.AtOnce) {
			break
		}
	}
	return out
}
