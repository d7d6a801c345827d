package siege

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// goodPrefix begins the names of all good interfaces.
const goodPrefix = "good"

const (
	standing = 32                     // good values that never change
	changing = 64                     // good names that are created, changed and removed
	pace     = 200 * time.Millisecond // from one change to the next
)

// A changer declares good interfaces, each with one address that no other change has, and
// measures when the kernel has it. Each name has at most one change under way, so that every
// change must be seen. If all names wait, the next change waits too, and its time counts.
type changer struct {
	rules
	source source
	random *rand.Rand

	mu      sync.Mutex        // guards what follows
	wanted  map[string]string // address by name
	waits   map[string]wait   // by the address that is to come or to go
	free    chan string       // names without a change under way
	count   int               // of addresses
	took    []time.Duration
	slowest []slow   // of these, the slowest first
	removed []string // standing values that vanished from the kernel
}

// mostSlow is how many of the slowest changes are kept.
const mostSlow = 3

// A slow is one of the slowest changes. The log of the agent says what it did meanwhile.
type slow struct {
	Name string
	Due  time.Time
	Took time.Duration
}

// A wait is a change that is not in the kernel yet.
type wait struct {
	name  string
	there bool // the address comes; otherwise it goes
	since time.Time
}

func newChanger(s source, r rules) *changer {
	return &changer{
		rules: r, source: s, random: rand.New(rand.NewPCG(uint64(r.Net), 0)),
		wanted: map[string]string{}, waits: map[string]wait{}, free: make(chan string, standing+changing),
	}
}

// run changes good values until ctx ends. The agent must be in the network of the test.
func (r *changer) run(ctx context.Context) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for ctx.Err() == nil {
		due := <-tick.C
		select {
		case name := <-r.free: // at once, unless the agent has kept all names waiting
			if err := r.change(ctx, name, due); err != nil {
				return err
			}
		case <-ctx.Done():
		}
	}
	return nil
}

// declareAll declares all names.
func (r *changer) declareAll(ctx context.Context) error {
	for i := range standing + changing {
		name := fmt.Sprintf("%s%d", r.Prefix, i)
		if err := r.put(ctx, veth(peerOf(name), name, "")); err != nil {
			return err
		}
		if err := r.change(ctx, name, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// begin has the changes begin, when the kernel has all names.
func (r *changer) begin() {
	for range standing + changing {
		if name := <-r.free; !r.stands(name) {
			r.free <- name
		}
	}
	r.times()
}

// times returns the times of all changes since the last call, and the slowest of these.
func (r *changer) times() (took times, slowest []slow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	took, slowest = r.took, r.slowest
	r.took, r.slowest = nil, nil
	slices.Sort(took)
	return took, slowest
}

// stands tells whether a name is one of those that never change.
func (r *changer) stands(name string) bool {
	var i int
	_, err := fmt.Sscanf(name, r.Prefix+"%d", &i)
	return err == nil && i < standing
}

// change creates, changes or removes a good value. It was due at since.
func (r *changer) change(ctx context.Context, name string, since time.Time) error {
	r.mu.Lock()
	addr := r.wanted[name]
	removes := addr != "" && !r.Keeps && r.random.IntN(4) == 0
	if removes {
		delete(r.wanted, name)
	} else {
		addr = fmt.Sprintf("10.%d.%d.%d/32", r.Net, r.count>>8&0xff, r.count&0xff)
		r.wanted[name] = addr
		r.count++
	}
	r.waits[addr] = wait{name, !removes, since}
	r.mu.Unlock()
	it := veth(name, peerOf(name), fmt.Sprintf(`,"enabled":true,"ip_addresses":[%q]`, addr))
	if removes {
		it.value = ""
	}
	return r.put(ctx, it)
}

func (r *changer) put(ctx context.Context, it item) error {
	// A change that was begun is made: what is declared must be known.
	if err := r.source.put(context.WithoutCancel(ctx), it.key, it.value); err != nil {
		return fmt.Errorf("declaring %s: %w", it.key, err)
	}
	return nil
}

// peerOf is the other end of an interface. It is always declared, and stands while the
// interface does.
func peerOf(name string) string { return name + "p" }

// seen is told of an address that came or went in the kernel.
func (r *changer) seen(addr string, there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.see(addr, there)
}

func (r *changer) see(addr string, there bool) {
	w, waits := r.waits[addr]
	if waits && w.there == there {
		delete(r.waits, addr)
		r.note(slow{w.name, w.since, time.Since(w.since)})
		r.free <- w.name
		return
	}
	if there {
		return
	}
	for name, wanted := range r.wanted {
		if wanted == addr && !waits {
			r.removed = append(r.removed, name+" "+addr)
		}
	}
}

// note counts a change that the kernel has.
func (r *changer) note(s slow) {
	r.took = append(r.took, s.Took)
	at, _ := slices.BinarySearchFunc(r.slowest, s, func(a, b slow) int { return cmp.Compare(b.Took, a.Took) })
	r.slowest = slices.Insert(r.slowest, at, s)
	r.slowest = r.slowest[:min(len(r.slowest), mostSlow)]
}

// look compares what waits with the kernel, after changes may have been missed.
func (r *changer) look() {
	has, err := addressesOf(r.Prefix)
	if err != nil {
		return // the next change of the kernel tells
	}
	there := map[string]bool{}
	for _, addr := range has {
		there[addr] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for addr, w := range maps.Clone(r.waits) {
		if there[addr] == w.there {
			r.see(addr, w.there)
		}
	}
}

// unsettled compares the kernel, which should have all good values and no others of these names, and no change under
// way. Nothing: it does.
func (r *changer) unsettled() (UnsettledError, error) {
	r.look()
	has, err := addressesOf(r.Prefix)
	if err != nil {
		return UnsettledError{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	differ, name := difference(r.expected(), has)
	if differ == "" && len(r.waits) == 0 {
		return UnsettledError{}, nil
	}
	return UnsettledError{Name: name, Text: fmt.Sprintf("%d changes wait; the kernel differs from the source: %s", len(r.waits), differ)}, nil
}

// An UnsettledError says how the kernel differs from the good values.
type UnsettledError struct {
	Name string // of an interface that differs
	Text string
}

// Error implements error.
func (e *UnsettledError) Error() string { return e.Text }

// expected are the addresses that all interfaces of the changer should have, by name.
func (r *changer) expected() map[string]string {
	out := map[string]string{}
	for name, addr := range r.wanted {
		out[name], out[peerOf(name)] = addr, ""
	}
	return out
}

// difference describes one name whose addresses differ, and says how many do. It returns
// that name too.
func difference(want, has map[string]string) (text, name string) {
	count := 0
	note := func(differs, what string, args ...any) {
		count++
		name, text = differs, differs+" "+fmt.Sprintf(what, args...)
	}
	for name, addr := range want {
		switch got, there := has[name]; {
		case !there:
			note(name, "is missing, declared is %q", addr)
		case got != addr:
			note(name, "has %q, declared is %q", got, addr)
		}
	}
	for name, addr := range has {
		if _, declared := want[name]; !declared {
			note(name, "has %q, and is not declared", addr)
		}
	}
	if count == 0 {
		return "", ""
	}
	return fmt.Sprintf("%d names, such as: %s", count, text), name
}

// poll calls try until it succeeds, or returns its last error when ctx ends.
func poll(ctx context.Context, try func() error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
