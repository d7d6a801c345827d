package rest

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// Without users everybody may read, and change what the configuration opens.
func TestWhoMayChangeWithoutUsers(t *testing.T) {
	for name, tt := range map[string]struct {
		c       Config
		by, may string // what opens it; what everybody may do
	}{
		"no file":             {Config{}, "", Read},
		"the flag of a port":  {Config{Address: "127.0.0.1:9999"}, "", Read},
		"an endpoint":         {Config{Endpoint: "0.0.0.0:9191"}, "endpoint", Write},
		"an endpoint to read": {Config{Endpoint: "0.0.0.0:9191", Unauthenticated: Read, Unprotected: true, Older: true}, "", Read},
		"open":                {Config{Unauthenticated: Write}, "unauthenticated", Write},
		"open, as before":     {Config{Unprotected: true}, "allow-unauthenticated", Write},
		"the rights of 3.5":   {Config{Older: true}, "compat", Write},
		"users":               {Config{Endpoint: "0.0.0.0:9191", BasicAuth: []string{"u:p"}}, "", ""},
	} {
		for range 2 { // Complete may be called again
			if err := tt.c.Complete(); err != nil || tt.c.openedBy != tt.by || tt.c.Unauthenticated != tt.may {
				t.Errorf("%s: opened by %q, everybody may %q, %v; want %q, %q", name, tt.c.openedBy, tt.c.Unauthenticated, err, tt.by, tt.may)
			}
		}
	}
}

// A server that is not opened refuses exactly what changes something, before it reads the request, and says what is needed.
func TestEverybodyMayRead(t *testing.T) {
	inWorld(t, func(w *world) {
		o := w.options()
		o.readOnly, o.Socket = true, "/run/keyplane/vpp1.sock"
		w.handler = Handler(o)
		changes := map[string]bool{}
		for _, e := range (&handler{}).endpoints() {
			if e.Path == "/scheduler/wait" || e.Path == "/events" {
				continue // they last
			}
			url := strings.NewReplacer("{logger}", "etcd", "{level}", "info", "{model}", "govppmux.stats", "{connection}", "vpp", "{source}", "etcd").Replace(e.Path)
			rec := w.askWith(e.Method, url, "")
			if rec.Code != http.StatusForbidden {
				continue
			}
			changes[e.Method+" "+e.Path] = true
			for _, part := range []string{e.Method + " " + e.Path + " needs a password, a token or a certificate", "client-basic-auth, enable-token-auth, client-cert-files", "the group keyplane", "curl --unix-socket /run/keyplane/vpp1.sock"} {
				if !strings.Contains(rec.Body.String(), part) {
					t.Errorf("%s %s does not say %q: %s", e.Method, e.Path, part, rec.Body)
				}
			}
		}
		for _, want := range []string{
			"PUT /configuration", "DELETE /configuration", "POST /configuration/confirm", "POST /configuration/cancel", "POST /scheduler/retry", "POST /scheduler/downstream-resync",
			"POST /scheduler/connections/{connection}/forget", "POST /sources/{source}/forget", "PUT /log/{logger}/{level}",
		} {
			if !changes[want] {
				t.Errorf("%s is not refused", want)
			}
			delete(changes, want)
		}
		if len(changes) > 0 {
			t.Errorf("these are refused, too: %v", changes)
		}
		if status, answer := w.ask("POST", "/vpp/command", `{"vppclicommand": "show version"}`); status != http.StatusForbidden || !strings.Contains(answer, "permission vppCommand") {
			t.Errorf("VPP's command line: %d %s", status, answer)
		}
	})
}

// A server that everybody may change warns once, with the file and the key. One that is not opened does not.
func TestOpenIsWarnedOf(t *testing.T) {
	for name, tt := range map[string]struct {
		c    Config
		says string // nothing: no warning
	}{
		"by default":          {Config{}, ""},
		"an endpoint":         {Config{Endpoint: "127.0.0.1:9191", File: "/etc/http.conf"}, "can change the network; client-basic-auth, enable-token-auth, client-cert-files or unauthenticated: read of this file prevent that\" endpoint=127.0.0.1:9191 file=/etc/http.conf key=endpoint"},
		"open":                {Config{Unauthenticated: Write}, "file=http.conf key=unauthenticated"},
		"the rights of 3.5":   {Config{Older: true, Address: "0.0.0.0:9191"}, "read secrets; "},
		"others may read":     {Config{Endpoint: "0.0.0.0:9191", Unauthenticated: Read}, "everybody who reaches the HTTP server can read the configuration"},
		"passwords in clear":  {Config{Endpoint: "0.0.0.0:9191", BasicAuth: []string{"u:p"}}, "in clear text"},
		"users, the loopback": {Config{Endpoint: "127.0.0.1:9191", BasicAuth: []string{"u:p"}}, ""},
	} {
		var log bytes.Buffer
		if err := tt.c.Complete(); err != nil {
			t.Fatal(err)
		}
		(&Server{Config: tt.c}).warn(slog.New(slog.NewTextHandler(&log, nil)))
		if !strings.Contains(log.String(), tt.says) || strings.Count(log.String(), "\n") != min(1, len(tt.says)) {
			t.Errorf("%s: the log is %q, want one line with %q", name, &log, tt.says)
		}
	}
}
