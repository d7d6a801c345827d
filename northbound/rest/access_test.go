package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/northbound/rest/internal/auth"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// guarded gives the world's handler users: ann may dump, eve may also see secrets, pat may send commands to VPP.
func (w *world) guarded() {
	hash, err := bcrypt.GenerateFromPassword([]byte("pass"), bcrypt.MinCost)
	w.must(err)
	c := Config{
		BasicAuth: []string{"root:word"}, EnableTokenAuth: true, SignKey: strings.Repeat("k", auth.MinSignKey), HashCost: bcrypt.MinCost,
		Users: []auth.User{{Name: "ann", Password: string(hash), Permissions: []string{"dump"}}, {Name: "eve", Password: string(hash), Permissions: []string{"dump", "nbConfigRead", "secrets"}}, {Name: "pat", Password: string(hash), Permissions: []string{"vppCommand"}}},
	}
	w.must(c.Complete())
	o := w.options()
	o.guard, err = c.guard()
	w.must(err)
	w.handler = Handler(o)
}

// askWith sends a request with headers. An answer without end, such as that of /events, is
// read for a minute.
func (w *world) askWith(method, url, body string, headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

// token logs a user in.
func (w *world) token(name string) string {
	w.t.Helper()
	rec := w.askWith("POST", "/authenticate", `{"username": "`+name+`", "password": "pass"}`)
	if rec.Code != http.StatusOK || !strings.Contains(rec.Header().Get("Set-Cookie"), "ligato-rest-auth=") {
		w.t.Fatalf("login of %s: %d %s", name, rec.Code, rec.Body)
	}
	return strings.TrimSpace(rec.Body.String())
}

// TestEachEndpointNeedsItsPermission asks for each endpoint without a user, as a user
// without permissions, and as the administrator.
func TestEachEndpointNeedsItsPermission(t *testing.T) {
	inWorld(t, func(w *world) {
		w.guarded()
		ann := w.token("ann")
		for _, e := range (&handler{}).endpoints() {
			url := strings.NewReplacer("{logger}", "etcd", "{level}", "info", "{model}", "govppmux.stats", "{connection}", "vpp").Replace(e.Path)
			if code := w.askWith(e.Method, url, "").Code; (code == http.StatusUnauthorized) != (e.Group != endpoint.Open) && !strings.HasSuffix(e.Path, "/authenticate") {
				t.Errorf("%s %s without a user: %d", e.Method, e.Path, code)
			}
			if strings.HasSuffix(e.Path, "/logout") {
				continue // it would log ann out
			}
			allowed := e.Group == endpoint.Open || e.Group == endpoint.Any || e.Group == endpoint.Dump
			if code := w.askWith(e.Method, url, "", "Authorization", "Bearer "+ann).Code; (code != http.StatusForbidden) != allowed {
				t.Errorf("%s %s as ann, who may dump: %d", e.Method, e.Path, code)
			}
		}
		rec := w.askWith("GET", "/scheduler/stats", "")
		if got := rec.Header().Get("WWW-Authenticate"); !strings.HasPrefix(got, "Basic ") {
			t.Errorf("the challenge is %q", got)
		}
	})
}

// closed reports that a page can load and run nothing, and is in no frame.
func closed(h http.Header) bool {
	policy := h.Get("Content-Security-Policy")
	return strings.Contains(policy, "default-src 'none'") && strings.Contains(policy, "frame-ancestors 'none'")
}

// Pages and pictures of the server can load and run nothing.
func TestPagesAreClosed(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, path := range []string{"/", "/scheduler/graph", "/ui"} {
			if rec := w.askWith("GET", path, ""); rec.Code != http.StatusOK || !closed(rec.Header()) {
				t.Errorf("%s: %d with %v", path, rec.Code, rec.Header())
			}
		}
	})
}

// TestLogin goes through the life of a token, with the form of a browser.
func TestLogin(t *testing.T) {
	inWorld(t, func(w *world) {
		w.guarded()
		if rec := w.askWith("GET", "/login", ""); !strings.Contains(rec.Body.String(), `action="/authenticate"`) || !closed(rec.Header()) {
			t.Errorf("the form is %s, with %v", rec.Body, rec.Header())
		}
		form := []string{"Content-Type", "application/x-www-form-urlencoded"}
		if rec := w.askWith("POST", "/authenticate", "username=ann&password=wrong", form...); rec.Code != http.StatusUnauthorized {
			t.Errorf("a wrong password: %d %s", rec.Code, rec.Body)
		}
		rec := w.askWith("POST", "/auth/authenticate", "username=ann&password=pass", form...)
		if rec.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("a token has the headers %v; expected no-store", rec.Header())
		}
		cookie := rec.Header().Get("Set-Cookie")
		for _, want := range []string{"HttpOnly", "SameSite=Strict", "Max-Age=3600", "Path=/"} {
			if !strings.Contains(cookie, want) {
				t.Errorf("the cookie %s lacks %s", cookie, want)
			}
		}
		value, _, _ := strings.Cut(cookie, ";")
		if rec := w.askWith("GET", "/scheduler/status", "", "Cookie", value); rec.Code != http.StatusOK {
			t.Errorf("with the cookie: %d", rec.Code)
		}
		if rec := w.askWith("POST", "/logout", "", "Cookie", value); rec.Code != http.StatusOK || rec.Body.String() != "{}\n" {
			t.Errorf("the logout: %d %s", rec.Code, rec.Body)
		}
		if rec := w.askWith("GET", "/scheduler/status", "", "Cookie", value); rec.Code != http.StatusUnauthorized {
			t.Errorf("after the logout: %d", rec.Code)
		}
		// As curl -d sends it.
		if rec := w.askWith("POST", "/authenticate", ` {"username": "ann", "password": "pass"}`, form...); rec.Code != http.StatusOK {
			t.Errorf("JSON that calls itself a form: %d %s", rec.Code, rec.Body)
		}
		for body, want := range map[string]string{`{"username": "ann"}`: "username and password are required", "{": "expected {", strings.Repeat("x", 5000): "login"} {
			if rec := w.askWith("POST", "/authenticate", body); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), want) {
				t.Errorf("%.20s: %d %s", body, rec.Code, rec.Body)
			}
		}
		for {
			rec := w.askWith("POST", "/authenticate", `{"username": "ann", "password": "guess"}`)
			if rec.Code == http.StatusTooManyRequests && rec.Header().Get("Retry-After") != "" {
				break
			}
			if rec.Code != http.StatusUnauthorized {
				t.Fatal(rec.Code, rec.Body)
			}
		}
	})
}

// TestWhoSeesSecrets asks for secrets in each answer that can have them.
func TestWhoSeesSecrets(t *testing.T) {
	inWorld(t, func(w *world) {
		w.guarded()
		ann, eve := w.token("ann"), w.token("eve")
		for _, url := range []string{"/scheduler/dump?descriptor=interface&secrets=1", "/dump/linux/v2/interfaces?secrets=true", "/scheduler/dump?secrets=1"} {
			if code := w.askWith("GET", url, "", "Authorization", "Bearer "+ann).Code; code != http.StatusForbidden {
				t.Errorf("%s as ann: %d", url, code)
			}
			if rec := w.askWith("GET", url, "", "Authorization", "Bearer "+eve); rec.Code != http.StatusOK {
				t.Errorf("%s as eve: %d %s", url, rec.Code, rec.Body)
			}
		}
		if rec := w.askWith("GET", "/configuration?secrets=1", "", "Authorization", "Bearer "+eve); rec.Code != http.StatusOK {
			t.Errorf("the configuration as eve: %d %s", rec.Code, rec.Body)
		}
		if rec := w.askWith("GET", "/configuration?secrets=perhaps", "", "Authorization", "Bearer "+eve); rec.Code != http.StatusBadRequest {
			t.Errorf("secrets=perhaps: %d %s", rec.Code, rec.Body)
		}
		w.handler = Handler(w.options()) // without users
		if rec := w.askWith("GET", "/scheduler/dump?descriptor=interface&secrets=1", ""); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "secrets are shown only") {
			t.Errorf("without users: %d %s", rec.Code, rec.Body)
		}
		o := w.options()
		o.Secrets = true // as on the agent's socket
		w.handler = Handler(o)
		if rec := w.askWith("GET", "/scheduler/dump?descriptor=interface&secrets=1", ""); rec.Code != http.StatusOK {
			t.Errorf("on the socket: %d %s", rec.Code, rec.Body)
		}
	})
}

// TestSecretsOnTheSocket asks where secrets are shown, and says that it wants them or does not.
func TestSecretsOnTheSocket(t *testing.T) {
	everyModel(t, true, func(w *world) {
		w.says("PUT", "/configuration", "vppConfig: {interfaces: [{name: m, type: MEMIF, memif: {secret: topsecret}}]}", 200, "{}\n")
		for _, path := range []string{"/configuration?", "/scheduler/dump?descriptor=vpp.interfaces&view=NB&", "/scheduler/dump?descriptor=vpp.interfaces&view=cached&"} {
			for query, shown := range map[string]bool{"": true, "secrets=": true, "secrets=1": true, "secrets=true": true, "secrets=0": false, "secrets=false": false} {
				if text := w.text(path + query); strings.Contains(text, "topsecret") != shown || strings.Contains(text, "(secret)") == shown {
					t.Errorf("%s%s answers %s", path, query, text)
				}
			}
		}
	})
}

// TestProbesTellStrangersLittle asks for the readiness without a user, and with one.
func TestProbesTellStrangersLittle(t *testing.T) {
	inWorld(t, func(w *world) {
		w.guarded()
		for _, path := range []string{"/liveness", "/readiness"} {
			var st wire.AgentStatus
			rec := w.askWith("GET", path, "")
			w.must(json.Unmarshal(rec.Body.Bytes(), &st))
			if len(st.Plugins) != 0 || len(st.Missing) != 0 || st.BuildVersion != "" {
				t.Errorf("%s without a user: %s", path, rec.Body)
			}
			rec = w.askWith("GET", path, "", "Authorization", "Bearer "+w.token("ann"))
			w.must(json.Unmarshal(rec.Body.Bytes(), &st))
			if len(st.Plugins) == 0 {
				t.Errorf("%s as ann: %s", path, rec.Body)
			}
		}
	})
}

// TestRateLimiter has more requests than the limit, and probes, which are not counted.
func TestRateLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{RateLimiter: RateLimit{Limit: 2}}
		if err := c.Complete(); err != nil || c.RateLimiter.Burst != 2 {
			t.Fatal(c.RateLimiter, err)
		}
		handler := c.limitRate(text200("ok"))
		ask := func(path string) int {
			rec := httptest.NewRecorder()
			handler.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			return rec.Code
		}
		for i, want := range []int{200, 200, 429} {
			if got := ask("/scheduler/stats"); got != want {
				t.Errorf("request %d: %d, want %d", i, got, want)
			}
		}
		if got := ask("/readiness"); got != 200 {
			t.Errorf("the probe: %d", got)
		}
		<-time.After(500 * time.Millisecond)
		if got := ask("/scheduler/stats"); got != 200 {
			t.Errorf("later: %d", got)
		}
	})
}

// TestTLS serves over TLS, to clients with a certificate only.
func TestTLS(t *testing.T) {
	files := testkit.MakeCertificates(t)
	_, ready, _ := serveWith(t, Config{Endpoint: "127.0.0.1:0", ServerCert: files.Server.Cert, ServerKey: files.Server.Key, ClientCerts: []string{files.CA}})
	addr := <-ready
	pem, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	pair, err := tls.LoadX509KeyPair(files.Client.Cert, files.Client.Key)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(certificates ...tls.Certificate) (string, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr.String()+"/info/version", nil)
		if err != nil {
			return "", err
		}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return answer.Proto + " " + answer.Status + string(bytes.TrimSpace(text)), err
	}
	if text, err := ask(pair); err != nil || !strings.HasPrefix(text, "HTTP/1.1 200") { // HTTP/2 has no bounds for all clients together
		t.Errorf("with a certificate: %s, %v", text, err)
	}
	if text, err := ask(); err == nil {
		t.Errorf("without a certificate: %s", text)
	}
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /info/version HTTP/1.0\r\n\r\n")
	if text, _ := io.ReadAll(c); strings.Contains(string(text), "agent") {
		t.Errorf("in clear text: %s", text)
	}
}
