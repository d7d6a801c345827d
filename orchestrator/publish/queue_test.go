package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
)

const root = "/vnf-agent/test/"

// A play is a ledger with a store, which changes only by what the ledger says.
type play struct {
	ledger *writeQueue
	now    time.Time
	store  map[string]string // state by key, without prefix
	texts  map[string][]byte // the same as it was written
}

func newPlay() *play {
	begin := time.Unix(1_000_000, 0)
	return &play{newWriteQueue(Options{Root: root}.withDefaults(), begin), begin, map[string]string{}, map[string][]byte{}}
}

// do plays one line of a story, and returns what came of it:
//
//	begin KEY...              a session begins, and the store has these keys
//	note KEY STATE [BASE]     what the scheduler tells
//	write N, fail N           what is written then, of at most N; fail: the store does not
//	after DURATION
//	due
func (p *play) do(line string) string {
	words := strings.Fields(line)
	switch args := words[1:]; words[0] {
	case "begin":
		p.begin(args)
	case "note":
		p.note(args...)
	case "write", "fail":
		n, _ := strconv.Atoi(args[0])
		return p.write(n, words[0] == "fail")
	case "after":
		d, _ := time.ParseDuration(args[0])
		p.now = p.now.Add(d)
	case "due":
		if at := p.ledger.nextTime(p.now); !at.IsZero() {
			return at.Sub(p.now).String()
		}
		return "never"
	}
	return ""
}

func (p *play) begin(keys []string) {
	clear(p.store)
	clear(p.texts)
	for _, key := range keys {
		p.store[key], p.texts[key] = "OLD", []byte("OLD")
	}
	p.ledger.beginSession(p.held())
}

// back brings the store to an older state, in which some keys have another text and some are missing.
func (p *play) back(other, gone []string) {
	for _, key := range other {
		p.store[key], p.texts[key] = "OLD", []byte("OLD")
	}
	for _, key := range gone {
		delete(p.store, key)
		delete(p.texts, key)
	}
	p.ledger.compare(p.held())
}

func (p *play) held() (held []kvdbsync.Pair) {
	for _, key := range slices.Sorted(maps.Keys(p.texts)) {
		held = append(held, kvdbsync.Pair{Key: root + below + key, Value: p.texts[key]})
	}
	return held
}

func (p *play) note(words ...string) {
	st := &scheduler.Status{Key: whole(words[0]), State: scheduler.State(kvscheduler.ValueState_value[words[1]])}
	if len(words) > 2 {
		st.Base = whole(words[2])
	}
	if st.State == scheduler.Failed {
		st.Err = errors.New("no")
	}
	p.ledger.update(st)
}

// whole is the key of a declared value, or of one that is not.
func whole(word string) string {
	if strings.HasPrefix(word, "part/") {
		return word
	}
	return config + word
}

func (p *play) write(n int, fail bool) string {
	writes := p.ledger.next(p.now, n)
	var out []string
	for _, w := range writes {
		key := strings.TrimPrefix(w.Key, root+below)
		out = append(out, key+"="+p.apply(key, w.Value, fail))
	}
	if fail {
		p.ledger.noteFailed(writes)
	} else {
		p.ledger.noteWritten(p.now, writes)
	}
	return strings.Join(out, " ")
}

func (p *play) apply(key string, value []byte, fail bool) string {
	text := "gone"
	if value != nil {
		var s status
		if err := json.Unmarshal(value, &s); err != nil {
			return err.Error()
		}
		text = s.State
		if len(s.Details) > 0 {
			text += fmt.Sprint(s.Details)
		}
	}
	switch {
	case fail:
	case value == nil:
		delete(p.store, key)
		delete(p.texts, key)
	default:
		p.store[key], p.texts[key] = text, value
	}
	return text
}

func TestWhatToWriteNext(t *testing.T) {
	tests := []struct {
		name  string
		story string // lines of play.do; what comes of one stands behind ->
	}{
		{"the newest counts, and is written once", `
			begin
			note a PENDING
			note a CONFIGURED
			due -> 0s
			write 9 -> a=CONFIGURED
			write 9 ->
			note a CONFIGURED
			after 1s
			write 9 ->
			due -> never`},
		{"a value that flaps is written once in a period", `
			begin
			note a CONFIGURED
			write 9 -> a=CONFIGURED
			note a FAILED
			note a CONFIGURED
			note a FAILED
			write 9 ->
			due -> 1s
			after 999ms
			write 9 ->
			after 1ms
			write 9 -> a=FAILED`},
		{"what is back before it was written is not written", `
			begin
			note a CONFIGURED
			write 9 -> a=CONFIGURED
			note a FAILED
			note a CONFIGURED
			after 1s
			write 9 ->`},
		{"what is not as declared comes first, not alone", `
			begin
			note a CONFIGURED
			note b CONFIGURED
			note c FAILED
			note d INVALID
			note e PENDING
			note f RETRYING
			write 4 -> c=FAILED d=INVALID e=PENDING a=CONFIGURED
			write 4 -> f=RETRYING b=CONFIGURED`},
		{"who waits as configured is called when it fails", `
			begin
			note a CONFIGURED
			note b CONFIGURED
			note b FAILED
			write 1 -> b=FAILED
			write 1 -> a=CONFIGURED
			write 1 ->`},
		{"what is removed says so, and goes", `
			begin
			note a CONFIGURED
			write 9 -> a=CONFIGURED
			after 5s
			note a REMOVED
			write 9 -> a=REMOVED
			write 9 ->
			after 1s
			write 9 -> a=gone
			after 1s
			write 9 ->
			due -> never`},
		{"what is removed comes back", `
			begin
			note a CONFIGURED
			write 9 -> a=CONFIGURED
			after 5s
			note a REMOVED
			write 9 -> a=REMOVED
			note a CONFIGURED
			after 1s
			write 9 -> a=CONFIGURED
			after 1s
			write 9 ->`},
		{"what came and went was never there", `
			begin
			note a CONFIGURED
			note a REMOVED
			write 9 ->
			due -> never`},
		{"what an earlier run has left", `
			begin known unknown late
			note known CONFIGURED
			write 9 -> known=CONFIGURED
			after 5s
			note late FAILED
			write 9 -> late=FAILED
			due -> 1s
			after 1s
			write 9 ->
			due -> 4s
			after 4s
			write 9 -> unknown=gone
			after 1s
			write 9 ->
			due -> never`},
		{"what an earlier run has left was known for a while", `
			begin a
			note a CONFIGURED
			write 9 -> a=CONFIGURED
			note a REMOVED
			after 1s
			write 9 -> a=REMOVED
			after 1s
			write 9 -> a=gone
			after 8s
			write 9 ->`},
		{"a session begins: all is written again", `
			begin
			note a CONFIGURED
			note b CONFIGURED
			note c CONFIGURED
			write 9 -> a=CONFIGURED b=CONFIGURED c=CONFIGURED
			note c REMOVED
			after 11s
			begin b c
			write 9 -> a=CONFIGURED b=CONFIGURED c=gone
			after 1s
			write 9 ->
			due -> never`},
		{"what failed comes again, behind the others", `
			begin
			note a CONFIGURED
			note b CONFIGURED
			note c CONFIGURED
			fail 2 -> a=CONFIGURED b=CONFIGURED
			write 1 -> c=CONFIGURED
			write 9 -> a=CONFIGURED b=CONFIGURED`},
		{"a failed write may have been made", `
			begin
			note a CONFIGURED
			fail 9 -> a=CONFIGURED
			note a REMOVED
			write 9 -> a=gone
			after 1s
			write 9 ->
			due -> never`},
		{"derived values are details of the declared one", `
			begin
			note a CONFIGURED
			note part/1 CONFIGURED a
			note part/2 FAILED a
			note part/1/x PENDING part/1
			write 9 -> a=CONFIGURED[part/1/x is PENDING part/2 is FAILED: no]
			after 1s
			note part/1/x CONFIGURED part/1
			note part/2 REMOVED a
			write 9 -> a=CONFIGURED
			after 1s
			note a REMOVED
			note part/1/x REMOVED part/1
			note part/1 REMOVED a
			write 9 -> a=REMOVED
			after 1s
			write 9 -> a=gone`},
		{"derived values may be told before what they are derived from", `
			begin
			note part/1/x FAILED part/1
			note part/1 CONFIGURED a
			write 9 ->
			note a CONFIGURED
			write 9 -> a=CONFIGURED[part/1/x is FAILED: no]`},
		{"values that are not declared have no key", `
			begin
			note part/1 OBTAINED
			write 9 ->
			due -> never`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlay()
			for line := range strings.Lines(tt.story) {
				do, want, _ := strings.Cut(strings.TrimSpace(line), "->")
				if do == "" {
					continue
				}
				if got := p.do(do); got != strings.TrimSpace(want) {
					t.Fatalf("%s\ngot  %s\nwant %s", do, got, want)
				}
			}
		})
	}
}

// In whatever order values are removed, nothing of them stays in memory.
func TestRemovedValuesAreForgotten(t *testing.T) {
	removals := []string{"note a REMOVED", "note part/1 REMOVED a", "note part/1/x REMOVED part/1"}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		p := newPlay()
		p.begin(nil)
		for _, line := range []string{"note a CONFIGURED", "note part/1 CONFIGURED a", "note part/1/x FAILED part/1", "note part/1/x CONFIGURED part/1"} {
			p.do(line)
		}
		for _, i := range order {
			p.do(removals[i])
		}
		p.do("write 9")
		if len(p.ledger.statuses) > 0 || len(p.ledger.rows) > 0 {
			t.Errorf("after the removals %v there are %d nodes and %d rows", order, len(p.ledger.statuses), len(p.ledger.rows))
		}
	}
}

// A change of one derived value costs the same, however many others its base value has.
func TestOneOfManyDerivedValuesChanges(t *testing.T) {
	p := newPlay()
	p.begin(nil)
	p.note("a", "CONFIGURED")
	for i := range 1000 {
		p.note(fmt.Sprint("part/", i), "CONFIGURED", "a")
	}
	if n := testing.AllocsPerRun(100, func() { p.note("part/1", "CONFIGURED", "a") }); n > 10 {
		t.Errorf("a change of one of 1000 derived values makes %v allocations, want at most 10", n)
	}
}

// TestProblemsAreCounted plays random histories of derived values, which come and go in any
// order. Each count of problems is that of the derived values.
func TestProblemsAreCounted(t *testing.T) {
	bases := map[string][]string{"a": {""}, "b": {""}, "part/1": {"a", "b"}, "part/2": {"a"}, "part/1/x": {"part/1"}, "part/1/x/y": {"part/1/x", "part/2"}}
	draw.Check(t, func(t *rapid.T) {
		p := newPlay()
		p.begin(nil)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := rapid.SampledFrom(slices.Sorted(maps.Keys(bases))).Draw(t, "key")
			words := []string{key, rapid.SampledFrom([]string{"CONFIGURED", "FAILED", "PENDING", "REMOVED"}).Draw(t, "state")}
			if base := rapid.SampledFrom(bases[key]).Draw(t, "base"); base != "" {
				words = append(words, base)
			}
			p.note(words...)
			for key, n := range p.ledger.statuses {
				if want := p.ledger.statuses.recount(n); n.problems != want {
					t.Fatalf("%s has %d problems, want %d", key, n.problems, want)
				}
			}
		}
	})
}

// recount returns the number of problems of all values derived from n.
func (k statusIndex) recount(n *node) (problems int) {
	for key := range n.derived {
		if isProblem(k[key].status.State) {
			problems++
		}
		problems += k.recount(k[key])
	}
	return problems
}

// TestTheStoreFollows plays random histories. In the end the store has what is
// known; no key was written twice in a period, and no batch was larger than allowed.
func TestTheStoreFollows(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		p := newPlay()
		p.begin([]string{"a", "left"})
		wanted, last := map[string]string{}, map[string]time.Time{}
		key := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"note", "note", "note", "write", "write", "fail", "after", "begin", "back"}).Draw(t, "what") {
			case "note":
				k, s := key.Draw(t, "key"), rapid.SampledFrom([]string{"CONFIGURED", "FAILED", "PENDING", "REMOVED"}).Draw(t, "state")
				p.note(k, s)
				wanted[k] = s
			case "write":
				p.checked(t, rapid.IntRange(1, 3).Draw(t, "n"), last)
			case "fail":
				p.write(rapid.IntRange(1, 3).Draw(t, "n"), true)
			case "after":
				p.now = p.now.Add(time.Duration(rapid.IntRange(1, 4).Draw(t, "for")) * 300 * time.Millisecond)
			case "begin":
				p.begin(rapid.SliceOfDistinct(key, rapid.ID).Draw(t, "held"))
			case "back":
				keys := rapid.SliceOfDistinct(key, rapid.ID)
				p.back(keys.Draw(t, "other"), keys.Draw(t, "gone"))
			}
		}
		p.now = p.now.Add(p.ledger.o.LeftoverGrace)
		for at := p.ledger.nextTime(p.now); !at.IsZero(); at = p.ledger.nextTime(p.now) {
			p.now = at
			p.checked(t, 3, last)
		}
		for k, s := range wanted {
			if s == "REMOVED" {
				delete(wanted, k)
			}
		}
		if fmt.Sprint(p.store) != fmt.Sprint(wanted) {
			t.Fatalf("the store has %v, wanted %v", p.store, wanted)
		}
		if len(p.ledger.rows) != len(wanted) || p.ledger.failed != 0 {
			t.Fatalf("%d rows for %d values, %d failed", len(p.ledger.rows), len(wanted), p.ledger.failed)
		}
	})
}

func (p *play) checked(t *rapid.T, n int, last map[string]time.Time) {
	writes := strings.Fields(p.write(n, false))
	if len(writes) > n {
		t.Fatalf("%d writes at once: %v", len(writes), writes)
	}
	for _, w := range writes {
		key, _, _ := strings.Cut(w, "=")
		if at, ok := last[key]; ok && p.now.Sub(at) < p.ledger.o.Period {
			t.Fatalf("%s was written %v ago", w, p.now.Sub(at))
		}
		last[key] = p.now
	}
}

func TestTextsAreBounded(t *testing.T) {
	long := strings.Repeat("ä", maxText)
	tests := []struct {
		name string
		in   status
		most int
	}{
		{"a long error", status{Error: long}, maxText + 100},
		{"a long detail", status{Details: []string{long}}, maxText + 100},
		{"many details", status{Details: slices.Repeat([]string{"label"}, 10_000)}, 2*maxText + 100},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.in.json()
			if len(text) > tt.most || len(text) < maxText || !json.Valid(text) {
				t.Errorf("%d bytes, want some at most %d: %.100s", len(text), tt.most, text)
			}
		})
	}
	if got := cutAll([]string{"a", "b"}, 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q of what fits", got)
	}
}

// While there is no session, nothing is kept of what came and went.
func TestRowsThatCameAndWentAreDropped(t *testing.T) {
	p := newPlay()
	p.note("stays", "FAILED")
	for i := range 1000 {
		key := strconv.Itoa(i)
		p.note(key, []string{"CONFIGURED", "FAILED"}[i%2])
		p.note(key, "REMOVED")
	}
	l := p.ledger
	if len(l.rows) != 1 || len(l.urgent)+len(l.normal) > 10 {
		t.Errorf("%d rows, %d of them in queues", len(l.rows), len(l.urgent)+len(l.normal))
	}
	p.note("7", "CONFIGURED")
	p.begin(nil)
	if got := p.write(10, false); got != "stays=FAILED[no] 7=CONFIGURED" && got != "stays=FAILED 7=CONFIGURED" {
		t.Errorf("written: %s", got)
	}
}
