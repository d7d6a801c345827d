package rest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A command may have had its effect although it failed, so the log says who has sent it.
func TestCommandsThatFailAreLogged(t *testing.T) {
	inWorld(t, func(w *world) {
		var log bytes.Buffer
		o := w.options()
		o.Secrets = true // as on the agent's socket
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		w.handler = Handler(o)
		w.says("POST", "/vpp/command", `{"vppclicommand": "set int state"}`, 500, "VPP is not connected")
		if !strings.Contains(log.String(), `command="set int state"`) {
			t.Errorf("the log is %s", &log)
		}
	})
}

// VPP's command line is for the socket, for administrators, and, as far as it only looks, for users with the permission. An
// endpoint without users does not have it, also if its configuration opens everything else.
func TestWhoMaySendCommands(t *testing.T) {
	inWorld(t, func(w *world) {
		post := func(line string, headers ...string) (status int, answer string) {
			rec := w.askWith("POST", "/vpp/command", `{"vppclicommand": "`+line+`"}`, headers...)
			return rec.Code, rec.Body.String()
		}
		for _, line := range []string{"show version", "set interface state"} {
			if status, answer := post(line); status != http.StatusForbidden || !strings.Contains(answer, "permission vppCommand or admin") || !strings.Contains(answer, "curl --unix-socket") {
				t.Errorf("%q from anybody, without users: %d %s", line, status, answer)
			}
		}
		w.guarded()
		pat := "Bearer " + w.token("pat")
		root := "Basic " + base64.StdEncoding.EncodeToString([]byte("root:word"))
		for line, looks := range map[string]bool{
			"show version": true, "show  interface addr": true, "show": false, "sh version": false, "show vers": false,
			"show wireguard peer": false, "show ipsec sa 0 detail": false, "show crypto engines": false, "set interface state": false,
			`show version\nset interface state`: false, "exec file": false, "Show version": false,
		} {
			status, answer := post(line, "Authorization", pat)
			if refused := status == http.StatusForbidden; refused == looks || refused && !strings.Contains(answer, "curl --unix-socket") {
				t.Errorf("%q with the permission: %d %s", line, status, answer)
			}
			if status, answer := post(line, "Authorization", root); status == http.StatusForbidden {
				t.Errorf("%q from an administrator: %d %s", line, status, answer)
			}
		}
	})
}

// Passwords that come with each request are not guessed: after some wrong ones an address learns nothing for a while, and
// others go on. The log says who guesses.
func TestGuesses(t *testing.T) {
	inWorld(t, func(w *world) {
		w.guarded()
		ask := func(from, password string) int {
			r := httptest.NewRequest(http.MethodGet, "/scheduler/stats", nil)
			r.RemoteAddr = from
			r.SetBasicAuth("root", password)
			rec := httptest.NewRecorder()
			w.handler.ServeHTTP(rec, r)
			return rec.Code
		}
		for port := range 5 {
			if code := ask(fmt.Sprint("[2001:db8::", port, "]:1"), "guess"); code != http.StatusUnauthorized {
				t.Errorf("a wrong password: %d", code)
			}
		}
		if wrong, right, other := ask("[2001:db8::9]:1", "guess"), ask("[2001:db8::9]:2", "word"), ask("192.0.2.1:1", "word"); wrong != http.StatusTooManyRequests || right != wrong || other != http.StatusOK {
			t.Errorf("after five: a wrong one %d, the right one %d, another address %d", wrong, right, other)
		}
		basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("root:old"))
		if rec := w.askWith("GET", "/scheduler/dump", "", "Authorization", basic, "Cookie", "ligato-rest-auth="+w.token("ann")); rec.Code != http.StatusOK {
			t.Errorf("a wrong password beside a token: %d %s", rec.Code, rec.Body)
		}
		<-time.After(time.Second)
		if code := ask("[2001:db8::9]:1", "word"); code != http.StatusOK {
			t.Errorf("a second later: %d", code)
		}
	})
}
