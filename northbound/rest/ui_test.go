package rest

import (
	"net/http"
	"strings"
	"testing"
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
