package fleet

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// TestRemovalWaitsForTheAgent removes a key of a store in memory. Only an agent may say that it is done.
func TestRemovalWaitsForTheAgent(t *testing.T) {
	const key, other = "/vnf-agent/edge-1/config/linux/interfaces/v2/interface/a", "/vnf-agent/edge-1/config/linux/interfaces/v2/interface/b"
	const configured, failed = `{"state":"CONFIGURED"}`, `{"state":"FAILED","error":"busy"}`
	removal := kvdbsync.Pair{Key: key}
	declaration := kvdbsync.Pair{Key: other, Value: []byte(`{"name":"b"}`)}
	for name, c := range map[string]struct {
		changes []kvdbsync.Pair
		before  string // the status of the key before; empty: none
		// What the agent makes of the status of the keys within a second: each "key=status", or
		// "key" alone, which has none any more.
		agent []string
		want  string // what is printed; it fails if that has FAILED
	}{
		"nobody follows":                       {[]kvdbsync.Pair{removal}, configured, nil, "FAILED: not configured within 3s: config/linux/interfaces/v2/interface/a is not removed yet: its status is as before, CONFIGURED"},
		"the agent removes it":                 {[]kvdbsync.Pair{removal}, configured, []string{key}, "edge-1: configured"},
		"the agent says REMOVED":               {[]kvdbsync.Pair{removal}, configured, []string{key + `={"state":"REMOVED"}`}, "edge-1: configured"},
		"it was FAILED, and nobody follows":    {[]kvdbsync.Pair{removal}, failed, nil, "FAILED: not configured within 3s: config/linux/interfaces/v2/interface/a is not removed yet: its status is as before, FAILED"},
		"it was FAILED, and the agent removes": {[]kvdbsync.Pair{removal}, failed, []string{key}, "edge-1: configured"},
		"it cannot be removed":                 {[]kvdbsync.Pair{removal}, configured, []string{key + "=" + failed}, "FAILED: config/linux/interfaces/v2/interface/a is FAILED: busy"},
		"it had no status":                     {[]kvdbsync.Pair{removal}, "", nil, "FAILED: not configured within 3s: config/linux/interfaces/v2/interface/a: no status, also before its removal"},
		"it had no status, another key gets one": {
			[]kvdbsync.Pair{removal, declaration}, "", []string{other + "=" + configured}, "edge-1: configured",
		},
		"it keeps its status, another key gets one": {
			[]kvdbsync.Pair{removal, declaration}, configured, []string{other + "=" + configured}, "FAILED: not configured within 3s: config/linux/interfaces/v2/interface/a is not removed yet",
		},
		"an address of it is refused for now": {
			[]kvdbsync.Pair{removal, declaration}, configured, []string{key, other + `={"state":"CONFIGURED","details":["b/address/fd00::1/64 is RETRYING: in use"]}`},
			"FAILED: not configured within 3s: config/linux/interfaces/v2/interface/b is CONFIGURED: b/address/fd00::1/64 is RETRYING: in use",
		},
		"an address of it is refused": {
			[]kvdbsync.Pair{removal, declaration}, configured, []string{key, other + `={"state":"CONFIGURED","details":["b/address/fd00::1/64 is FAILED: in use"]}`},
			"FAILED: config/linux/interfaces/v2/interface/b is CONFIGURED: b/address/fd00::1/64 is FAILED: in use",
		},
		"it has a warning": {
			[]kvdbsync.Pair{removal, declaration}, configured, []string{key, other + `={"state":"CONFIGURED","details":["mtu has no effect"]}`}, "edge-1: configured",
		},
		"it had a status, another key gets none": {
			[]kvdbsync.Pair{removal, declaration}, configured, []string{key}, "FAILED: not configured within 3s: config/linux/interfaces/v2/interface/b: no status; does the agent run",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store conformance.Memory
				put := func(key, value string) {
					if err := store.Put(t.Context(), key, []byte(value)); err != nil {
						t.Error(err)
					}
				}
				put(key, `{"name":"a"}`)
				if c.before != "" {
					put(statusKey(key), c.before)
				}
				agent := time.AfterFunc(time.Second, func() {
					for _, act := range c.agent {
						of, status, published := strings.Cut(act, "=")
						if published {
							put(statusKey(of), status)
						} else if _, err := store.Delete(t.Context(), statusKey(of)); err != nil {
							t.Error(err)
						}
					}
				})
				defer agent.Stop()
				var out bytes.Buffer
				o := rollout{s: &session.Session{Streams: session.Streams{Out: &out}}, store: &store, batch: 1, maxFailures: 1, wait: true, patience: 3 * time.Second}
				err := o.run(t.Context(), []*job{{label: "edge-1", changes: c.changes}})
				if fails := strings.Contains(c.want, "FAILED"); !strings.Contains(out.String(), c.want) || errors.Is(err, errNotAll) != fails || err != nil && !fails {
					t.Errorf("prints %s%v, want %s", &out, err, c.want)
				}
				if _, err := store.Get(t.Context(), key); !errors.Is(err, kvdbsync.ErrNotFound) {
					t.Errorf("the key is still there: %v", err)
				}
			})
		})
	}
}

// TestRemovalAgain continues after an interruption: the key is gone, and the agent may not have acted.
func TestRemovalAgain(t *testing.T) {
	const key = "/vnf-agent/edge-1/config/linux/interfaces/v2/interface/a"
	for status, want := range map[string]string{
		"":                       "edge-1: unchanged, configured",
		`{"state":"CONFIGURED"}`: "FAILED: not configured within 3s: config/linux/interfaces/v2/interface/a is CONFIGURED",
	} {
		synctest.Test(t, func(t *testing.T) {
			var store conformance.Memory
			if status != "" {
				if err := store.Put(t.Context(), statusKey(key), []byte(status)); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			o := rollout{s: &session.Session{Streams: session.Streams{Out: &out}}, store: &store, batch: 1, maxFailures: 1, wait: true, patience: 3 * time.Second}
			_ = o.run(t.Context(), []*job{{label: "edge-1", changes: []kvdbsync.Pair{{Key: key}}}})
			if !strings.Contains(out.String(), want) {
				t.Errorf("prints %s, want %s", &out, want)
			}
		})
	}
}
