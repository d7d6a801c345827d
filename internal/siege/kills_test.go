package siege

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/internal/testkit/session"
)

// A killer kills the processes of one side, while the values of both sides change. The other side
// shows what an undisturbed agent makes of the same values.
type killer struct {
	*testing.T
	harmed, unharmed *side
	random           *rand.Rand // of the goroutine that kills
	killed           map[string]int

	all    mixed
	editor sync.Mutex // guards what follows; who holds it stops the edits
	edits  *rand.Rand
	values map[string]string // declared, by key
	edited int
	marks  int // see compare
}

// A mixed configuration survives kills of VPP, of the agent and of the store at random moments:
// nothing is left behind, and nothing is lost. The seed decides about edits and kills; the moments
// also depend on the machine.
func TestKills(t *testing.T) {
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	_, err := exec.LookPath("iptables-save")
	testkit.Need(t, "iptables-save (iptables)", err == nil)
	t.Parallel()
	draw.Each(t, killProcesses)
}

func killProcesses(t *testing.T, seed uint64) {
	programs := session.Build(t, "../../cmd/agent", "../../cmd/vppsim")
	k := &killer{
		T: t, harmed: startSide(t, programs, "harmed"), unharmed: startSide(t, programs, "unharmed"), all: newMixed(t),
		random: rand.New(rand.NewPCG(seed, 0)), edits: rand.New(rand.NewPCG(seed, 1)),
		killed: map[string]int{}, values: map[string]string{},
	}
	bare := k.compare(t.Context(), "before all")
	k.declare(t.Context(), k.all.keys())
	k.compare(t.Context(), "with all values")
	k.killAll(t.Context())
	k.leave(t.Context(), bare)
	t.Logf("%d keys with %d edits; killed %v", len(k.all), k.edited, k.killed)
}

// killsBetween is the number of kills from one comparison to the next.
const killsBetween = 6

// killAll kills until there were enough kills, and compares from time to time.
func (k *killer) killAll(ctx context.Context) {
	k.Helper()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- k.edit(ctx) }()
	for n := 0; n < *opts.kills && !k.Failed(); {
		for next := min(n+killsBetween, *opts.kills); n < next; {
			n += k.kill(ctx)
		}
		k.compare(ctx, fmt.Sprintf("after %d kills", n))
	}
	cancel()
	if err := <-ended; err != nil {
		k.Fatal(err)
	}
}

// A victim is a kind of process that is killed.
type victim struct {
	name        string
	kill, start func() error
}

func (k *killer) victims() []victim {
	done := func(do func()) func() error { return func() error { do(); return nil } }
	return []victim{
		{"agent", done(k.harmed.kill), k.harmed.start},
		{"VPP", done(k.harmed.vpp.kill), k.harmed.vpp.start},
		{"store", done(k.harmed.store.Kill), done(k.harmed.store.Start)},
	}
}

// kill kills one process at a random moment, or several at once, and starts them again. It
// returns their number.
func (k *killer) kill(ctx context.Context) (number int) {
	k.Helper()
	victims := k.victims()
	k.random.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	if number = 1; k.random.IntN(6) == 0 {
		number = 2 + k.random.IntN(2)
	}
	victims = victims[:number]
	pause(ctx, k.moment())
	for _, v := range victims {
		k.killed[v.name]++
		if err := v.kill(); err != nil {
			k.Fatal(err)
		}
	}
	for _, v := range victims {
		if k.random.IntN(2) == 0 {
			pause(ctx, k.moment())
		}
		if err := v.start(); err != nil {
			k.Fatal(err)
		}
	}
	return number
}

// moment is a random time. Most are so short that the last kill still has effects.
func (k *killer) moment() time.Duration {
	return min(time.Duration(k.random.ExpFloat64()*float64(300*time.Millisecond)), 3*time.Second)
}

// editPace is the time from one edit to the next.
const editPace = 30 * time.Millisecond

// edit changes, removes and returns random values until ctx ends.
func (k *killer) edit(ctx context.Context) error {
	tick := time.NewTicker(editPace)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		if err := k.editOnce(ctx); err != nil {
			return unlessOver(ctx, err)
		}
	}
	return nil
}

// editOnce changes some values in one transaction; from time to time most values.
func (k *killer) editOnce(ctx context.Context) error {
	k.editor.Lock()
	defer k.editor.Unlock()
	keys := k.all.keys()
	k.edits.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	next, n := k.next, 1+k.edits.IntN(8)
	if k.edits.IntN(30) == 0 {
		n = min(len(keys), mostInTxn)
		next = [](func(string) string){k.next, k.oneOf, k.none}[k.edits.IntN(3)]
	}
	var edits []edit
	for _, key := range keys[:n] {
		edits = append(edits, edit{key, next(key)})
	}
	return k.put(ctx, edits)
}

// next is a random next value for a key; empty: none.
func (k *killer) next(key string) string {
	if k.values[key] != "" && k.edits.IntN(3) == 0 {
		return k.none(key)
	}
	return k.oneOf(key)
}

// oneOf is one of the values for a key.
func (k *killer) oneOf(key string) string { return k.all[key][k.edits.IntN(len(k.all[key]))] }

// none removes a key, unless it stays.
func (k *killer) none(key string) string {
	if staying(key) {
		return k.oneOf(key)
	}
	return ""
}

// mostInTxn is the most edits of a transaction: etcd takes no more than 128.
const mostInTxn = 100

// put makes edits on both sides. Edits that were begun are made: what is declared must be known.
func (k *killer) put(ctx context.Context, edits []edit) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), testkit.Patience)
	defer cancel()
	for some := range slices.Chunk(edits, mostInTxn) {
		for _, s := range []*side{k.unharmed, k.harmed} {
			if err := s.commit(ctx, some); err != nil {
				return fmt.Errorf("editing the store of %s: %w", s.name, err)
			}
		}
		for _, e := range some {
			if k.values[e.key] = e.value; e.value == "" {
				delete(k.values, e.key)
			}
		}
		k.edited += len(some)
	}
	return nil
}

// declare puts the first value of each of these keys.
func (k *killer) declare(ctx context.Context, keys []string) {
	k.Helper()
	var edits []edit
	for _, key := range keys {
		edits = append(edits, edit{key, k.all[key][0]})
	}
	if err := k.put(ctx, edits); err != nil {
		k.Fatal(err)
	}
}

// leave removes all values and kills all processes meanwhile: what remains is what there was before.
func (k *killer) leave(ctx context.Context, bare account) {
	k.Helper()
	var others, last []edit
	for _, key := range k.all.keys() {
		if staying(key) {
			last = append(last, edit{key: key})
		} else {
			others = append(others, edit{key: key})
		}
	}
	if err := k.put(ctx, others); err != nil {
		k.Fatal(err)
	}
	k.kill(ctx)
	k.compare(ctx, "with tables and chains alone")
	if err := k.put(ctx, last); err != nil {
		k.Fatal(err)
	}
	k.kill(ctx)
	if err := k.compare(ctx, "without values").differs(bare); err != nil {
		k.Errorf("what was declared is left behind:\n%v", err)
	}
}

// look is the time from one comparison to the next: reading all takes much of the machine.
const look = 200 * time.Millisecond

// compare stops the edits until both sides have the same, and returns what that is.
func (k *killer) compare(ctx context.Context, when string) account {
	k.Helper()
	k.editor.Lock()
	defer k.editor.Unlock()
	// An agent that has seen the newest mark has seen all edits.
	k.marks++
	if err := k.put(ctx, []edit{{markKey(k.marks - 1), ""}, {markKey(k.marks), markOf(k.marks)}}); err != nil {
		k.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, testkit.Patience)
	defer cancel()
	var last error
	for {
		same, err := k.differs(ctx)
		if err == nil {
			return same
		}
		if ctx.Err() == nil || last == nil { // a comparison that ctx broke off tells nothing
			last = err
		}
		if ctx.Err() != nil {
			k.explain(last)
			k.Fatalf("%s: %v", when, last)
		}
		pause(ctx, look)
	}
}

// explain logs what the agents tell about some of the keys that an error names.
func (k *killer) explain(err error) {
	k.Helper()
	named := regexp.MustCompile(`\b(config|vpp|linux)/[^ "]+`).FindAllString(err.Error(), -1)
	for _, key := range named[:min(len(named), 3)] {
		for _, s := range []*side{k.harmed, k.unharmed} {
			for _, path := range []string{"/scheduler/explain", "/scheduler/key-timeline"} {
				var answer json.RawMessage
				err := s.read(context.WithoutCancel(k.Context()), path+"?key="+url.QueryEscape(key), &answer)
				k.Logf("%s%s of %s: %s%v", s.name, path, key, answer, err)
			}
		}
	}
}

func markKey(n int) string { return fmt.Sprintf("config/netalloc/v1/ip/network/mark/interface/%d", n) }

func markOf(n int) string {
	return fmt.Sprintf(`{"network_name":"mark","interface_name":"%d","address":"10.255.0.1/24"}`, n)
}

// differs compares the sides. It returns what VPP and the kernel have.
func (k *killer) differs(ctx context.Context) (account, error) {
	var states, actual [2]account
	for i, s := range []*side{k.harmed, k.unharmed} {
		var err error
		if states[i], err = s.states(ctx); err == nil {
			err = k.shows(states[i])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if err := states[0].differs(states[1]); err != nil {
		return nil, err
	}
	for i, s := range []*side{k.harmed, k.unharmed} {
		var err error
		if actual[i], err = s.actual(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return actual[0], actual[0].differs(actual[1])
}

// shows checks that states are of all declared keys, and of no others.
func (k *killer) shows(states account) error {
	for key := range k.values {
		if states[key] == "" {
			return fmt.Errorf("%s is declared, and the agent does not know it", key)
		}
	}
	for key, state := range states {
		if _, ok := k.values[key]; !ok && strings.HasPrefix(key, "config/") && !strings.HasPrefix(state, "OBTAINED") && !strings.HasPrefix(state, "DISCOVERED") {
			return fmt.Errorf("%s is %s, and not declared", key, state)
		}
	}
	return nil
}
