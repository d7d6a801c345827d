package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A browser that was told that a name of another site is this address gets nothing.
func TestHosts(t *testing.T) {
	tests := []struct {
		endpoint string
		allowed  []string
		yes, no  string
	}{
		{"127.0.0.1:9191", nil, "127.0.0.1 127.0.0.1:9191 localhost localhost:80 LocalHost. [::1]:9191 [::1] 192.0.2.1:9191", "evil.example evil.example:9191 localhost.evil.example 127.0.0.1.evil.example evil.example. a:b:c"},
		{"edge.example.org:9191", nil, "edge.example.org edge.example.org:9191 Edge.example.org.:9191 localhost", "example.org"},
		{"0.0.0.0:9191", []string{"Edge", "edge.example.org"}, "edge:9191 edge.example.org 192.0.2.1", "evil.example"},
		{"0.0.0.0:9191", nil, "vpp-agent:9191 192.0.2.1 agent.default.svc agent.default.svc.cluster.local edge.Internal.", "evil.example svc.evil.example local.evil.example"},
		{":9191", nil, "vpp-agent:9191", "evil.example"},
	}
	for _, tt := range tests {
		c := Config{Endpoint: tt.endpoint, AllowedHosts: tt.allowed}
		h := c.checkHost(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for status, hosts := range map[int]string{http.StatusOK: tt.yes, http.StatusForbidden: tt.no} {
			for host := range strings.FieldsSeq(hosts) {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/info/version", nil)
				r.Host = host
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != status {
					t.Errorf("%s at %s: %d, want %d", host, tt.endpoint, w.Code, status)
				}
				if status != http.StatusOK && !strings.Contains(w.Body.String(), "allowed-hosts") {
					t.Errorf("%s does not say what to do", w.Body)
				}
			}
		}
	}
}
