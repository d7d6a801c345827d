package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
	"github.com/keyplane/keyplane/scheduler/explain"
	"github.com/keyplane/keyplane/scheduler/txnlog"
	"github.com/keyplane/keyplane/scheduler/wait"
)

var update = flag.Bool("update", false, "write what the stories show into their files")

// A story drives a scheduler over a fakeNet by text.
type story struct {
	t     *testing.T
	net   *fakeNet
	sched *scheduler.Scheduler
	index *scheduler.Index[int]
	group *scheduler.Connection
	watch *scheduler.Watch[*scheduler.Status]
	txn   scheduler.Txn
}

func (s *story) line(f []string) {
	switch f[0] {
	case "want":
		v, err := s.sched.Value(key(f[1]), message(f[1], f[2:]))
		if err != nil {
			s.change(scheduler.Change{Key: key(f[1]), Err: err})
			return
		}
		s.change(v.Change())
	case "refuse": // the newest intent, while this is what was valid before
		v, err := s.sched.Value(key(f[1]), message(f[1], f[2:]))
		must(s.t, err)
		s.change(scheduler.Change{Key: key(f[1]), Value: &v, Err: errInvalid})
	case "keep": // the newest intent is invalid, and what was valid before stays
		_, err := s.sched.Value(key(f[1]), message(f[1], f[2:]))
		st, _ := s.sched.Status(key(f[1]))
		last, lastErr := s.sched.Value(key(f[1]), st.Desired)
		must(s.t, lastErr)
		s.change(scheduler.Change{Key: key(f[1]), Value: &last, Err: err})
	case "unwant":
		s.change(scheduler.Unwant(key(f[1])))
	case "commit":
		s.commit(f[1:])
	case "break", "mend", "stands", "foreign", "vanish":
		s.net.set(f)
	case "see":
		s.sched.Observe(scheduler.Observed{Key: key(f[1]), Value: s.net.stands[key(f[1])]})
	case "refresh":
		if err := s.sched.Refresh(f[1:]...); err != nil {
			s.print("error: " + err.Error())
		}
	case "retry":
		var keys []string
		for _, name := range f[1:] {
			keys = append(keys, key(name))
		}
		rec, err := s.sched.Retry(s.t.Context(), keys...)
		if err != nil {
			s.print("error: " + err.Error())
		} else if rec == nil {
			s.print("nothing has failed")
		}
	case "sleep":
		d, err := time.ParseDuration(f[1])
		must(s.t, err)
		<-time.After(d)
	case "explain":
		s.print(explain.Key(s.sched, key(f[1])).String())
	case "plan":
		s.plan()
	case "lost":
		s.group.Lost(errors.New(strings.Join(f[1:], " ")))
	case "ready":
		s.group.Ready()
	case "forget":
		if _, err := s.sched.Forget(s.t.Context(), f[1]); err != nil {
			s.print("error: " + err.Error())
		}
	case "connections":
		s.connections()
	case "news":
		s.news()
	case "wait":
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		defer cancel()
		if err := wait.For(ctx, s.sched, key(f[1])); err != nil {
			s.print("error: " + err.Error())
		}
	case "status":
		s.status()
	case "drift":
		d, err := drift.Check(s.t.Context(), s.sched)
		must(s.t, err)
		for _, v := range d.Values {
			line := fmt.Sprintf("%s %s", short(v.Key), v.Kind)
			if v.State == scheduler.Failed || v.State == scheduler.Retrying {
				line += fmt.Sprintf(", %s", v.State)
			}
			s.print(line)
		}
		for _, k := range d.Unknown {
			s.print(fmt.Sprintf("unknown: %s: %s", k.Descriptor, k))
		}
		for _, err := range d.Errors {
			s.print("not read: " + err.Error())
		}
		s.print(fmt.Sprintf("%d of %d drifted", len(d.Values), d.Read))
	case "text":
		h := s.sched.History()
		s.print(clock.ReplaceAllString(txnlog.Text(h[len(h)-1], -1), "TIME"))
	case "index":
		for _, name := range slices.Sorted(maps.Keys(s.index.All())) {
			m, _ := s.index.Get(name)
			s.print(fmt.Sprintf("%s %d", name, m))
		}
	default:
		s.t.Fatalf("unknown command %q", f)
	}
	<-time.After(time.Millisecond) // for the verbs
	synctest.Wait()
}

var clock = regexp.MustCompile(`\d{4}-\d\d-\d\d [\d:.]+`)

func (s *story) change(c scheduler.Change) { s.txn.Changes = append(s.txn.Changes, c) }

func (s *story) commit(flags []string) {
	txn := s.txn
	s.txn = scheduler.Txn{}
	for _, f := range flags {
		switch f {
		case "refresh":
			txn.Refresh = true
		case "replace":
			txn.Replace = true
		case "simulate":
			txn.Simulate = true
		case "revert":
			txn.Revert = true
		case "once":
			txn.Retry.Never = true
		case "twice":
			txn.Retry.Count = 2
		default:
			txn.Description += f
		}
	}
	r, err := s.sched.Commit(s.t.Context(), txn)
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		s.print("error: " + line)
	}
	for _, err := range r.RefreshErrors {
		s.print("not refreshed: " + err.Error())
	}
}

func (s *story) plan() {
	r, err := s.sched.Plan(s.t.Context(), s.txn)
	must(s.t, err)
	s.txn = scheduler.Txn{}
	for _, op := range r.Planned.All() {
		s.print(strings.TrimRight(fmt.Sprintf("%s %s %s", op.Verb, short(op.Key), strings.Join(txnlog.Flags(&op), " ")), " "))
	}
	for _, k := range r.Unknown {
		s.print(fmt.Sprintf("unknown: %s: %s", k.Descriptor, k))
	}
}

// connections prints what is known of the connections.
func (s *story) connections() {
	for _, c := range s.sched.Connections() {
		s.print(strings.TrimRight(fmt.Sprintf("%s %s since %s %s", c.Name, c.State, c.Since.UTC().Format(time.RFC3339), c.Why), " "))
		for _, k := range c.Kinds {
			s.print(fmt.Sprintf("  %s: %s", k.Descriptor, k))
		}
	}
}

// news prints what the watch has seen since the last time.
func (s *story) news() {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	news, err := s.watch.Next(ctx)
	if err != nil {
		s.print("none")
	}
	for _, st := range news {
		s.print(fmt.Sprintf("%s %s", short(st.Key), st.State))
	}
}

func (s *story) print(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		s.net.write("  " + strings.TrimRight(line, "\n") + "\n")
	}
}

func (s *story) status() {
	for _, st := range s.sched.Statuses("") {
		text := fmt.Sprintf("%s %s", short(st.Key), st.State)
		if len(st.Details) > 0 {
			text += fmt.Sprintf(" %v", st.Details)
		}
		if st.Err != nil {
			line, _, _ := strings.Cut(st.Err.Error(), "\n")
			text += ": " + line
		}
		s.print(text)
	}
}

func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			must(t, err)
			var got string
			synctest.Test(t, func(t *testing.T) { got = tell(t, string(want)) })
			if *update {
				must(t, os.WriteFile(file, []byte(got), 0o644))
			}
			if got != string(want) {
				t.Errorf("got:\n%s", got)
			}
		})
	}
}

func tell(t *testing.T, text string) string {
	t.Helper()
	net := &fakeNet{out: &bytes.Buffer{}, stands: map[string]proto.Message{}, foreign: map[string]bool{}, broken: map[string]string{}}
	// The scheduler has the result of each verb before the next one ends. Results that come together
	// would make operations ready in another order than results that come one by one.
	net.duration = 1
	s := &story{t: t, net: net}
	simulate := strings.HasPrefix(text, "# simulated\n")
	s.sched = scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Concurrency: 1, Simulate: simulate})
	if strings.HasPrefix(text, "# connected\n") {
		s.group = group(t, s.sched, "net")
		net.above(t, s.sched)
	}
	s.watch = s.sched.Watch("config/")
	defer s.watch.Close()
	s.index = net.descriptors(t, s.sched)
	stop := begin(t, s.sched)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") {
			continue // what was shown
		}
		net.write(line)
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			s.line(f)
			checkCounts(t, s.sched)
		}
	}
	stop()
	net.mu.Lock()
	defer net.mu.Unlock()
	return net.out.String()
}
