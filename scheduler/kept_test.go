package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// An evidentError has a short text, or a long one, and always holds much.
type evidentError struct {
	text     string
	evidence []byte
}

func (e *evidentError) Error() string { return e.text }

// TestHistoryHoldsNoMoreThanItsBound fills the history with transactions that would hold
// much more, each in another way, and measures the heap.
func TestHistoryHoldsNoMoreThanItsBound(t *testing.T) {
	const bound, one, rounds = 4 << 20, 512 << 10, 200 // 100 MiB of them
	const live = 4 * one                               // the newest record, and the status of the value
	huge := func(i int) string { return fmt.Sprint(i, strings.Repeat("x", one)) }
	for name, round := range map[string]func(s *scheduler.Scheduler, i int) scheduler.Txn{
		"long errors of verbs":  func(s *scheduler.Scheduler, i int) scheduler.Txn { return txnOf(t, s, "long", i, "") },
		"errors that hold much": func(s *scheduler.Scheduler, i int) scheduler.Txn { return txnOf(t, s, "heavy", i, "") },
		"values":                func(s *scheduler.Scheduler, i int) scheduler.Txn { return txnOf(t, s, "fine", i, huge(i)) },
		"descriptions": func(_ *scheduler.Scheduler, i int) scheduler.Txn {
			return scheduler.Txn{Description: huge(i)}
		},
		"refusals": func(_ *scheduler.Scheduler, i int) scheduler.Txn {
			return scheduler.Txn{Changes: []scheduler.Change{{Key: key("bad"), Err: errors.New(huge(i))}}}
		},
		"keys": func(_ *scheduler.Scheduler, i int) scheduler.Txn {
			return scheduler.Txn{Changes: []scheduler.Change{scheduler.Unwant(huge(i))}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var attempts int
			s := scheduler.New(scheduler.Options{HistoryBytes: bound, Log: slog.New(slog.DiscardHandler), Retry: scheduler.RetryPolicy{Never: true}})
			plain(t, s, func(name string) error {
				attempts++
				switch name {
				case "long":
					return errors.New(huge(attempts))
				case "heavy":
					return &evidentError{"short", make([]byte, one)}
				}
				return nil
			})
			defer begin(t, s)()
			before := heap()
			for i := range rounds {
				_, _ = s.Commit(t.Context(), round(s, i)) // some are to fail
			}
			if held := heap() - before; held > bound+live {
				t.Errorf("%d records hold %d KiB; the bound is %d KiB", len(s.History()), held>>10, bound>>10)
			}
			runtime.KeepAlive(s)
		})
	}
}

// txnOf makes the interface another one each time.
func txnOf(t *testing.T, s *scheduler.Scheduler, name string, i int, address string) scheduler.Txn {
	v, err := s.Value(key(name), &interfaces.Interface{Name: name, Mtu: uint32(i), PhysAddress: address})
	must(t, err)
	return scheduler.Txn{Changes: []scheduler.Change{v.Change()}}
}

func heap() int {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestCommitReturnsErrorsWhole shows that only the history has texts instead of errors.
func TestCommitReturnsErrorsWhole(t *testing.T) {
	s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
	broken := &evidentError{text: strings.Repeat("é", 5000)}
	plain(t, s, func(string) error { return broken })
	defer begin(t, s)()
	record, err := s.Commit(t.Context(), scheduler.Txn{Changes: interfacesNamed(t, s, 1)})
	if !errors.Is(err, broken) || !errors.Is(record.Err(), broken) {
		t.Errorf("Commit returns %.80v", err)
	}
	kept := s.History()[0].Executed.At(0).NewErr
	if text := kept.Error(); len(text) > 1100 || !strings.HasSuffix(text, "é… (10000 bytes)") || !utf8.ValidString(text) {
		t.Errorf("the history has %d bytes: …%q", len(text), text[len(text)-30:])
	}
	if errors.Is(kept, broken) {
		t.Error("the history holds the error itself")
	}
}

// TestTransactionLogIsPrintable has everything that comes from outside attack a terminal
// and the lines of the log.
func TestTransactionLogIsPrintable(t *testing.T) {
	for name, attack := range map[string]string{
		"escape sequence": "\x1b]0;owned\x07\x1b[2J", "carriage return": "\rFORGED", "line feed": "\nFORGED",
		"one-byte control": "\u009b2J", "override": "\u202eFORGED", "line separator": "\u2028FORGED", "paragraph": "\u2029FORGED", "not UTF-8": "\xffFORGED",
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := scheduler.New(scheduler.Options{TransactionLog: txnlog.New(txnlog.Options{Out: &out, Full: true}), Simulate: true, Log: slog.New(slog.DiscardHandler), Retry: scheduler.RetryPolicy{Never: true}})
			failing := errors.New("the server says" + attack)
			_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, struct{}]{
				Name: "interface", Model: models.For[*interfaces.Interface](),
				Create: func(context.Context, string, *interfaces.Interface) (struct{}, error) { return struct{}{}, failing },
				Delete: func(context.Context, string, *interfaces.Interface, struct{}) error { return nil },
				Dependencies: func(key string, _ *interfaces.Interface) []scheduler.Dependency {
					if strings.HasSuffix(key, "waits") {
						return []scheduler.Dependency{{Label: "label" + attack, Key: "missing"}}
					}
					return nil
				},
			})
			must(t, err)
			stop := begin(t, s)
			defer stop()
			var changes []scheduler.Change
			for _, name := range []string{"fails", "waits"} {
				m := &interfaces.Interface{Name: name, PhysAddress: strings.ToValidUTF8("x"+attack, "")}
				v, err := s.Value(key(name), m)
				must(t, err)
				changes = append(changes, v.Change())
			}
			changes = append(changes, scheduler.Change{Key: "config/" + attack, Err: failing})
			_, _ = s.Commit(t.Context(), scheduler.Txn{Description: "made" + strings.ReplaceAll(attack, "\n", " "), Changes: changes})
			must(t, s.Flush(t.Context()))
			text := out.String()
			for _, r := range s.History() {
				text += txnlog.Text(r, -1) + txnlog.Text(r, 0) + txnlog.PlanText(r, -1)
			}
			for _, key := range []string{"config/" + attack, key("fails"), key("waits"), "none" + attack} {
				text += explain.Key(s, key).String()
			}
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(line) {
					t.Errorf("not printable: %q", line)
				}
				if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
					t.Errorf("forged: %q", line)
				}
			}
			if strings.Count(text, "the server says") < 5 {
				t.Errorf("the attack is not shown at all:\n%s", text)
			}
		})
	}
}
