package kvdbsync_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// mostShown is more than the text of an error may have, and much less than a store can send.
const mostShown = 2 << 10

// long is an error with a text of a megabyte.
func long() error { return fmt.Errorf("%w: %s", errDown, strings.Repeat("x", 1<<20)) }

// The errors of a store are shown, logged and published. Their texts are cut, and they still wrap the
// same errors.
func TestErrorsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		steps := make(chan step)
		s := run(t, kvdbsync.Options{Connector: script(steps), MinBackoff: time.Hour, MaxBackoff: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))})
		steps <- step{b: kvdbsync.Batch{Synced: true, Problems: []error{long()}, Events: []kvdbsync.Event{{Key: "a", Err: long()}}}}
		steps <- step{b: kvdbsync.Batch{Problems: []error{long(), errDown}}}
		steps <- step{err: long()}
		synctest.Wait()
		h := s.Health()
		c, _ := s.Take()
		if len(c.Events) != 1 || len(c.Problems) != 2 {
			t.Fatalf("took %d events, %d problems", len(c.Events), len(c.Problems))
		}
		for _, err := range []error{h.Err, h.LastErr, c.Problems[0], c.Events[0].Err} {
			if text := err.Error(); len(text) > mostShown || !strings.HasSuffix(text, "… (1048596 bytes)") || !errors.Is(err, errDown) {
				t.Errorf("an error of %d bytes ends with %q", len(text), text[max(0, len(text)-30):])
			}
		}
		if log.Len() > 2*mostShown {
			t.Errorf("the log has %d bytes", log.Len())
		}
	})
}

// A key that is too long has no place anywhere. All of them are one problem of the store, whose text is
// short, until they are deleted.
func TestKeysThatAreTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan step)
		s := run(t, kvdbsync.Options{Connector: script(steps), Root: "/root/"})
		key := func(name string, length int) string {
			return "/root/" + name + strings.Repeat("k", length-len(name))
		}
		one := func(shown string, length int) string {
			return fmt.Sprintf(`too large: the key "%s%s"… has %d bytes; expected at most 4096`, shown, strings.Repeat("k", 80-len(shown)), length)
		}
		changed := func(events ...kvdbsync.Event) step { return step{b: kvdbsync.Batch{Events: events}} }
		fits, first, second := key("a", kvdbsync.MaxKey), key("b", kvdbsync.MaxKey+1), key("c", 1<<20)
		steps <- listed(put(fits, "1"), put(first, "1"), put("/elsewhere/"+first, "1"))
		expect(t, s, strings.TrimPrefix(fits, "/root/")+"=1 (a key is ignored: "+one("b", kvdbsync.MaxKey+1)+") resynced")
		if h := s.Health(); h.Keys != 1 || h.Problems != 1 {
			t.Errorf("%d keys, %d problems; want one of each", h.Keys, h.Problems)
		}
		steps <- changed(put(first, "2"))
		expect(t, s, "nothing")
		steps <- changed(put(second, "1"))
		expect(t, s, "(2 keys are ignored, such as this one: "+one("b", kvdbsync.MaxKey+1)+")")
		steps <- changed(kvdbsync.Event{Key: first})
		expect(t, s, "(ignored keys that have more than 4096 bytes, are not UTF-8 text, or exceed max-keys: 1)")
		steps <- changed(kvdbsync.Event{Key: second})
		expect(t, s, "")
		if h := s.Health(); h.Problems != 0 {
			t.Errorf("%d problems are left", h.Problems)
		}
	})
}

// A key that is not UTF-8 is a problem of the store, too.
func TestKeyThatIsNotUTF8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		m.Txn(put("/root/caf\xe9", "1"), put("/root/café", "1"))
		s := run(t, kvdbsync.Options{Connector: &m, Root: "/root/"})
		expect(t, s, `café=1 (a key is ignored: the key "caf\xe9" is not UTF-8 text) resynced`)
		m.Txn(put("/root/caf\xe9", "2"))
		expect(t, s, "nothing")
		m.Txn(kvdbsync.Event{Key: "/root/caf\xe9"})
		expect(t, s, "")
		m.Txn(put("/root/caf\xe9", "3"))
		expect(t, s, `(a key is ignored: the key "caf\xe9" is not UTF-8 text)`)
	})
}

// Names beside the watched keys are logged, too.
func TestNamesBesideAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		steps := make(chan step)
		run(t, kvdbsync.Options{
			Connector: script(steps), Root: "/root/", Prefix: "config/", Log: slog.New(slog.NewTextHandler(&log, nil)),
			Browser: namesBeside{strings.Repeat("x", 1<<20) + "/"},
		})
		steps <- listed()
		synctest.Wait()
		if !strings.Contains(log.String(), "ignoring keys outside") || log.Len() > mostShown {
			t.Errorf("the log has %d bytes", log.Len())
		}
	})
}

type namesBeside []string

func (n namesBeside) Beside(context.Context, string, []string) ([]string, error) { return n, nil }
