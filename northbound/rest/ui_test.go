package rest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/northbound/rest/wire/browse"
)

// TestThePageIsServed loads the document and its files without a user: they have no secret.
func TestThePageIsServed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.guarded()
		for path, want := range map[string]string{"/ui": "text/html", "/ui/app.js": "text/javascript", "/ui/app.css": "text/css", "/ui/icon.svg": "image/svg+xml"} {
			rec := w.askWith(http.MethodGet, path, "")
			header := rec.Header()
			if got := header.Get("Content-Type"); rec.Code != http.StatusOK || !strings.HasPrefix(got, want) || rec.Body.Len() == 0 {
				t.Errorf("%s: %d %s", path, rec.Code, got)
			}
			for _, rule := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
				if got := header.Get("Content-Security-Policy"); !strings.Contains(got, rule) || strings.Contains(got, "unsafe") {
					t.Errorf("%s: the policy is %s", path, got)
				}
			}
			if rec := w.askWith(http.MethodGet, path, "", "If-None-Match", header.Get("ETag")); rec.Code != http.StatusNotModified || rec.Body.Len() != 0 {
				t.Errorf("%s once more: %d with %d bytes", path, rec.Code, rec.Body.Len())
			}
		}
		for _, path := range []string{"/ui/none.js", "/ui/sources.sha256", "/ui/..%2fui.go", "/ui/%2e%2e"} {
			if rec := w.askWith(http.MethodGet, path, ""); rec.Code != http.StatusNotFound {
				t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
			}
		}
	})
}

// TestASlashTooMany leads to the path without it, and keeps what a proxy has taken from the beginning.
func TestASlashTooMany(t *testing.T) {
	inWorld(t, func(w *world) {
		for path, want := range map[string]string{"/ui/": "../ui", "/ui/app.js/": "../app.js", "/scheduler/values/?why=1": "../values?why=1", "/info/models/": "../models"} {
			rec := w.askWith(http.MethodGet, path, "")
			if got := rec.Header().Get("Location"); rec.Code != http.StatusPermanentRedirect || got != want {
				t.Errorf("%s: %d %q; expected a redirect to %q", path, rec.Code, got, want)
			}
		}
		for _, path := range []string{"/none/", "/ui/none/more/"} {
			if rec := w.askWith(http.MethodGet, path, ""); rec.Code != http.StatusNotFound {
				t.Errorf("%s: %d %s", path, rec.Code, rec.Header().Get("Location"))
			}
		}
	})
}

// TestValuesByTrouble has the worst states first, and the keys of one state in order.
func TestValuesByTrouble(t *testing.T) {
	inWorld(t, func(w *world) {
		w.life()
		var page browse.ValuePage
		w.must(json.Unmarshal(w.askWith(http.MethodGet, "/scheduler/values?sort=trouble", "").Body.Bytes(), &page))
		worst := []string{"FAILED", "RETRYING", "INVALID", "UNIMPLEMENTED", "MISSING", "PENDING", "DISCOVERED", "OBTAINED", "CONFIGURED"}
		states := map[string]bool{}
		for i, v := range page.Values {
			states[v.State] = true
			if i == 0 {
				continue
			}
			before := page.Values[i-1]
			if was, is := slices.Index(worst, before.State), slices.Index(worst, v.State); was > is || was == is && before.Key > v.Key {
				t.Errorf("%s %s is before %s %s", before.State, before.Key, v.State, v.Key)
			}
		}
		if len(states) < 3 || len(page.Values) != page.Total {
			t.Errorf("%d of %d values with the states %v", len(page.Values), page.Total, states)
		}
	})
}
