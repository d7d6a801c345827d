package txnlog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/scheduler"
)

func TestLine(t *testing.T) {
	const (
		create, update, remove, validate = scheduler.Create, scheduler.Update, scheduler.Delete, scheduler.Validate
		configured, pending, failed      = scheduler.Configured, scheduler.Pending, scheduler.Failed
		removed, invalid                 = scheduler.Removed, scheduler.Invalid
	)
	type op = scheduler.Operation
	all := scheduler.Operations{}.With
	for name, test := range map[string]struct {
		record scheduler.Record
		want   string
	}{
		"some of each": {
			scheduler.Record{Seq: 12, Type: scheduler.Northbound, Description: "etcd", Executed: all([]op{
				{Verb: create, Key: "a", NewState: configured}, {Verb: create, Key: "p", NewState: configured, Property: true, Noop: true},
				{Verb: create, Key: "b", NewState: configured}, {Verb: update, Key: "c", NewState: configured}, {Verb: remove, Key: "d", NewState: removed},
				{Verb: create, Key: "r1", NewState: pending, Noop: true, Waits: []string{"interface-is-up", "vrf"}},
				{Verb: create, Key: "r2", NewState: pending, Noop: true, Waits: []string{"other"}},
				{Verb: create, Key: "f", NewState: failed, NewErr: errors.New("file exists\nmore")},
				{Verb: validate, Key: "i", NewState: invalid, Noop: true, NewErr: errors.New("name is required")},
			}...)},
			"#12 etcd: 2 created, 1 updated, 1 deleted, 1 failed: f: file exists, 1 invalid: i: name is required, 2 pending: r1 waits for interface-is-up, vrf\n",
		},
		"made again": {
			scheduler.Record{Seq: 1, Type: scheduler.Northbound, Executed: all([]op{
				{Verb: remove, Key: "a", OldState: configured, NewState: removed, Recreate: true},
				{Verb: create, Key: "a", OldState: removed, NewState: configured, Recreate: true},
			}...)},
			"#1 transaction: 1 recreated\n",
		},
		"made again with what depends on it": {
			scheduler.Record{Seq: 1, Type: scheduler.Northbound, Executed: all([]op{
				{Verb: remove, Key: "r", OldState: configured, NewState: pending, Waits: []string{"up"}},
				{Verb: remove, Key: "w", OldState: configured, NewState: pending, Waits: []string{"up"}},
				{Verb: remove, Key: "a", OldState: configured, NewState: removed, Recreate: true},
				{Verb: create, Key: "a", OldState: removed, NewState: configured, Recreate: true},
				{Verb: create, Key: "r", OldState: pending, NewState: configured},
			}...)},
			"#1 transaction: 2 recreated, 1 pending: w waits for up\n",
		},
		"undone": {
			scheduler.Record{Seq: 2, Type: scheduler.Northbound, Description: "grpc", Revert: true, Executed: all([]op{
				{Verb: create, Key: "a", NewState: configured}, {Verb: create, Key: "b", NewState: failed, NewErr: errors.New("no")},
				{Verb: remove, Key: "a", NewState: removed, Revert: true},
			}...)},
			"#2 grpc: 1 created, 1 reverted, 1 failed: b: no\n",
		},
		"nothing":           {scheduler.Record{Seq: 3, Type: scheduler.Notification}, "#3 notification: nothing to be done\n"},
		"resync":            {scheduler.Record{Seq: 4, Type: scheduler.Northbound, Refresh: true, RefreshErrors: []error{errors.New("x: gone"), errors.New("y")}}, "#4 DownstreamResync: nothing to be done; 2 not read back: x: gone\n"},
		"retry":             {scheduler.Record{Seq: 5, Type: scheduler.RetryFailed, RetryOf: 2, Attempt: 7, Executed: all(op{Verb: create, Key: "a", NewState: configured})}, "#5 retry of #2 (attempt 7): 1 created\n"},
		"a line of control": {scheduler.Record{Seq: 6, Type: scheduler.Northbound, Description: "a\x1b[2J\nb"}, "#6 a"},
	} {
		got := Line(&test.record)
		if got != test.want && (!strings.HasSuffix(test.want, "#6 a") || !strings.HasPrefix(got, test.want)) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if strings.Count(got, "\n") != 1 || strings.ContainsRune(got, '\x1b') {
			t.Errorf("%s: %q is not one printable line", name, got)
		}
	}
}

// Each value has its line, with its reason; the limit holds for all of them.
func TestLines(t *testing.T) {
	r := &scheduler.Record{Seq: 12, Type: scheduler.Northbound, Description: "etcd", Executed: scheduler.Operations{}.With([]scheduler.Operation{
		{Verb: scheduler.Create, Key: "a", NewState: scheduler.Configured},
		{Verb: scheduler.Create, Key: "property", NewState: scheduler.Configured, Property: true, Noop: true},
		{Verb: scheduler.Update, Key: "b", NewState: scheduler.Configured},
		{Verb: scheduler.Create, Key: "c", NewState: scheduler.Failed, NewErr: errors.New("file exists\x1b\nmore")},
		{Verb: scheduler.Create, Key: "d", NewState: scheduler.Pending, Noop: true, Waits: []string{"interface-is-up"}},
	}...)}
	const head = "#12 etcd: 1 created, 1 updated, 1 failed, 1 pending\n"
	const first = "  created  a\n  updated  b\n"
	for limit, want := range map[int]string{
		-1: head + first + "  failed   c: file exists\\x1b\n  pending  d waits for interface-is-up\n",
		4:  head + first + "  failed   c: file exists\\x1b\n  pending  d waits for interface-is-up\n",
		2:  head + first + "  … and 2 more values\n",
	} {
		if got := Lines(r, limit); got != want {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
	failure := errors.New("file exists")
	again := &scheduler.Record{Seq: 13, Type: scheduler.RetryFailed, RetryOf: 12, Attempt: 2, Executed: scheduler.Operations{}.With([]scheduler.Operation{
		{Verb: scheduler.Create, Key: "c", NewState: scheduler.Failed, OldErr: failure, NewErr: failure},
	}...)}
	if got, want := Lines(again, -1), Line(again); got != want {
		t.Errorf("a retry without news: %q, want %q", got, want)
	}
}

// A Log with Operations writes the lines, unless it writes everything.
func TestLogOfOperations(t *testing.T) {
	for _, full := range []bool{false, true} {
		var out strings.Builder
		log := New(Options{Out: &out, Operations: true, Full: full})
		r := &scheduler.Record{Seq: 1, Type: scheduler.Northbound, Description: "etcd", Executed: scheduler.Operations{}.With(scheduler.Operation{Verb: scheduler.Create, Key: "a", NewState: scheduler.Configured})}
		log.Begin(r)
		log.End(r)
		ended, end := context.WithCancel(t.Context())
		end() // Run writes everything that waits, and returns
		if err := log.Run(ended); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); (got == Lines(r, -1)) == full {
			t.Errorf("full: %v: wrote %q", full, got)
		}
	}
}

// A line has a bounded length, whatever the keys and errors are.
func TestLineIsBounded(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	r := &scheduler.Record{Description: long, Executed: scheduler.Operations{}.With(scheduler.Operation{Key: long, NewErr: errors.New(long)})}
	if n := len(Line(r)); n > 2*maxErrorText {
		t.Errorf("%d bytes", n)
	}
}

// The limit holds for failures too: 10,000 of them are not 10,000 lines.
func TestLimitHoldsForFailures(t *testing.T) {
	r := &scheduler.Record{Type: scheduler.Northbound}
	failed := scheduler.Operation{Verb: scheduler.Create, NewErr: errors.New("no such interface")}
	r.Executed = scheduler.Operations{}.With(slices.Repeat([]scheduler.Operation{failed}, 10_000)...)
	for range 10_000 {
		r.RefreshErrors = append(r.RefreshErrors, errors.New("gone"))
	}
	text := Text(r, 5)
	if lines := strings.Count(text, "\n"); lines > 100 {
		t.Errorf("%d lines with a limit of 5", lines)
	}
	for _, want := range []string{"and 9990 more failures", "and 9995 more not read back", "and 9995 more operations: 9995 CREATE"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q", want)
		}
	}
}
