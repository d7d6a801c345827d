package rest

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

// TestUnknownIsNamed has a connection be lost, be gone for good, and come back with a kind that cannot be read.
// Each answer that depends on its values says so, with the reason and the time.
func TestUnknownIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, sched: scheduler.New(scheduler.Options{})}
		link, err := w.sched.Connection("vpp")
		w.must(err)
		var unread error
		_, err = scheduler.Register(w.sched, scheduler.Descriptor[*l2.BridgeDomain, struct{}]{
			Name: "bridge", Model: models.For[*l2.BridgeDomain](), Connection: "vpp",
			Create: func(context.Context, string, *l2.BridgeDomain) (struct{}, error) { return struct{}{}, nil },
			Delete: func(context.Context, string, *l2.BridgeDomain, struct{}) error { return nil },
			Retrieve: func(context.Context, []scheduler.Desired[*l2.BridgeDomain]) iter.Seq2[scheduler.Found[*l2.BridgeDomain, struct{}], error] {
				return func(yield func(scheduler.Found[*l2.BridgeDomain, struct{}], error) bool) {
					if unread != nil {
						yield(scheduler.Found[*l2.BridgeDomain, struct{}]{}, unread)
					}
				}
			},
		})
		w.must(err)
		h := &health.Health{Scheduler: w.sched}
		h.Complete()
		w.handler = Handler(Options{Scheduler: w.sched, Health: h})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.sched.Run(ctx) }()
		link.Ready()
		w.must(w.commit("", &l2.BridgeDomain{Name: "bd"}))
		const bridge = "config/vpp/l2/v2/bridge-domain/bd"
		says := func(method, path, body string, status int, want ...string) {
			t.Helper()
			got, answer := w.ask(method, path, body)
			if got != status {
				t.Errorf("%s %s: status %d, expected %d", method, path, got, status)
			}
			for _, text := range want {
				text, absent := strings.CutPrefix(text, "not ")
				if strings.Contains(answer, text) == absent {
					t.Errorf("%s %s: expected, or did not expect, %q in\n%s", method, path, text, answer)
				}
			}
		}
		says("GET", "/scheduler/connections", "", http.StatusOK, `"State": "READY"`, "not Unknown")
		says("POST", "/scheduler/connections/vpp/forget", "", http.StatusConflict, "the connection is not lost")
		says("POST", "/scheduler/connections/vp/forget", "", http.StatusNotFound, "there is no such connection; expected one of: vpp")

		<-time.After(time.Hour)
		link.Lost(errors.New("unplugged"))
		<-time.After(time.Hour)
		const since = `2000-01-01T01:00:00Z`
		says("GET", "/scheduler/connections", "", http.StatusOK, `"State": "LOST"`, `"Error": "unplugged"`, `"Descriptor": "bridge"`, `"Reason": "vpp: unplugged"`, `"Since": "`+since+`"`)
		says("GET", "/drift", "", http.StatusOK, `"Unknown": [`, `"Reason": "vpp: unplugged"`, since, `"Count": 0`)
		says("POST", "/scheduler/plan", "[]", http.StatusOK, `"Unknown": [`, `"Descriptor": "bridge"`, since)
		says("POST", "/scheduler/plan?format=text", "[]", http.StatusOK, "  * unknown, and not part of the plan:\n      - bridge: vpp: unplugged, since "+since)
		says("GET", "/scheduler/explain?key="+bridge, "", http.StatusOK, "nobody knows whether it exists: vpp: unplugged, since "+since)
		says("GET", "/readiness", "", http.StatusInternalServerError, "bd is PENDING: vpp: unplugged; unknown since "+since)

		says("POST", "/scheduler/connections/vpp/forget", "", http.StatusOK, `"Description": "vpp: gone for good"`)
		says("GET", "/scheduler/connections", "", http.StatusOK, `"State": "GONE"`, `"Error": "unplugged"`, "not Unknown")
		says("GET", "/drift", "", http.StatusOK, "not Unknown")
		says("POST", "/scheduler/plan", "[]", http.StatusOK, "not Unknown")
		says("GET", "/readiness", "", http.StatusInternalServerError, `bd is PENDING: vpp: unplugged"`)

		unread = errors.New("dump interrupted")
		link.Ready()
		synctest.Wait()
		says("GET", "/scheduler/connections", "", http.StatusOK, `"State": "READY"`, `"Reason": "it cannot be read back: dump interrupted"`, "not Error")
		says("GET", "/readiness", "", http.StatusInternalServerError, "dump interrupted; unknown since 2000-01-01T02:00:00Z")
		says("GET", "/drift", "", http.StatusOK, `"Unknown": [`, "not NotReadBack")
		unread = nil
		<-time.After(time.Hour)
		says("GET", "/readiness", "", http.StatusOK)
		says("GET", "/drift", "", http.StatusOK, "not Unknown")
		cancel()
		w.must(<-ended)
	})
}
