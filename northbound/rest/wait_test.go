package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/waiting"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// waits sends a request that waits, while f runs, and returns its answer and how long it took.
func (w *world) waits(body string, f func()) (out wire.Waited, took time.Duration) {
	w.t.Helper()
	begin, done := time.Now(), make(chan string, 1)
	go func() {
		_, text := w.ask("POST", "/scheduler/wait", body)
		took = time.Since(begin)
		done <- text
	}()
	synctest.Wait()
	f()
	w.must(json.Unmarshal([]byte(<-done), &out))
	return out, took
}

// A wait may take longer than a client has to read the answer: that time begins with the answer.
func TestWaitOfAServer(t *testing.T) {
	inWorld(t, func(w *world) {
		body := `{"Keys": ["` + ifPrefix + `if2"], "Milliseconds": 5000}`
		answer, stop := w.connect(Config{ReadTimeout: time.Second, WriteTimeout: time.Second},
			fmt.Sprintf("POST /scheduler/wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("the answer is %s", answer.Status)
		}
		stop()
	})
}

// TestWait waits for values that come, stay away, fail and go.
func TestWait(t *testing.T) {
	declaring(t, func(w *world) {
		put := func(body string) func() {
			return func() { w.says("PUT", "/configuration", body, 200, "{}\n") }
		}
		nothing := func() {}
		const route = routePrefix + "10.0.0.0/8/if1"

		// It waits for the route, which waits for its interface.
		out, took := w.waits(`{"Keys": ["/vnf-agent/vpp1/`+route+`"]}`, func() {
			put("linuxConfig: {routes: [{outgoing_interface: if1, dst_network: 10.0.0.0/8}]}")()
			<-time.After(time.Second)
			put("linuxConfig: {interfaces: [{name: if1, type: DUMMY}]}")()
		})
		if !out.Done || out.Count != 1 || took > 2*time.Second {
			t.Errorf("after %v: %+v", took, out)
		}
		// What is so already is answered at once; the time is over for what is not.
		if out, took = w.waits(`{"All": true}`, nothing); !out.Done || out.Count != 2 || took > 0 {
			t.Errorf("all, after %v: %+v", took, out)
		}
		out, took = w.waits(`{"Keys": ["`+ifPrefix+`if2"], "Milliseconds": 500}`, nothing)
		if out.Done || took != 500*time.Millisecond || len(out.Missing) != 1 || out.Missing[0].State != "NONEXISTENT" {
			t.Errorf("what does not exist, after %v: %+v", took, out)
		}
		out, _ = w.waits(`{"State": "pending", "Models": ["linux.l3.route"], "Milliseconds": 500}`, nothing)
		if out.Done || out.Missing[0].State != "CONFIGURED" {
			t.Errorf("pending: %+v", out)
		}
		// The content counts, too.
		out, _ = w.waits(`{"Values": [{"Key": "`+ifPrefix+`if1", "Value": {"name": "if1", "type": "DUMMY", "mtu": 1400}}, {"Key": "`+ifPrefix+`if9", "Value": null}]}`, func() {
			<-time.After(time.Second)
			put("linuxConfig: {interfaces: [{name: if1, type: DUMMY, mtu: 1400}]}")()
		})
		if !out.Done || out.Count != 2 {
			t.Errorf("content: %+v", out)
		}
		out, _ = w.waits(`{"Document": "linuxConfig: {interfaces: [{name: if1, type: DUMMY, mtu: 1300}]}", "Milliseconds": 1}`, nothing)
		if out.Done || out.Missing[0].State != "CONFIGURED" || out.Missing[0].Details[0] != "its content is another one" {
			t.Errorf("other content: %+v", out)
		}
		// What has failed does not change by itself.
		w.broken[ifPrefix+"if3"] = true
		out, took = w.waits(`{"Keys": ["`+ifPrefix+`if4"]}`, func() {
			w.refused(DefaultLayer, "if4")
		})
		if out.Done || !out.Hopeless || out.Missing[0].State != "INVALID" || took > time.Second {
			t.Errorf("an invalid value, after %v: %+v", took, out)
		}
		// Removal.
		out, _ = w.waits(`{"State": "REMOVED", "Keys": ["`+route+`"], "Models": ["linux.l3.route"]}`, func() {
			<-time.After(time.Second)
			w.says("DELETE", "/configuration?key="+route, "", 200, "{}\n")
		})
		if !out.Done || out.Count != 1 {
			t.Errorf("removed: %+v", out)
		}
	})
}

// TestWaitRefuses sends requests that make no sense.
func TestWaitRefuses(t *testing.T) {
	inWorld(t, func(w *world) {
		for body, want := range map[string]string{
			``:                               "expected {",
			`{}`:                             "expected Keys, Models, Values, Document or All",
			`{"All": true, "State": "good"}`: `State is \"good\"; expected one of missing, unimplemented`,
			`{"Document": "linuxConfig: {interfaces: [{nam: if1}]}"}`:            "line 1 of Document: ",
			`{"Models": ["linux.l3.rout"]}`:                                      "no such model",
			`{"All": true, "Seconds": 1}`:                                        "unknown field",
			`{"All": true, "Milliseconds": 1000000}`:                             "expected 1 to 60000",
			`{"Values": [{"Key": "` + ifPrefix + `a", "Value": {"name": "b"}}]}`: "name is",
		} {
			w.says("POST", "/scheduler/wait", body, 400, want)
		}
		// A source is not complete: the values that it will list count, too.
		out, took := w.waits(`{"All": true, "Milliseconds": 3000}`, func() {})
		if out.Done || len(out.Incomplete) == 0 || took != 3*time.Second {
			t.Errorf("with an incomplete source, after %v: %+v", took, out)
		}
	})
}

// An unread body must not be read.
type unread struct{ t *testing.T }

// Read implements io.Reader.
func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// TestWaitsAreBounded has as many clients wait as may: the body of a further one is not read.
func TestWaitsAreBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		for range waiting.MaxClients {
			go w.ask("POST", "/scheduler/wait", `{"Keys": ["a"], "Milliseconds": 1000}`)
		}
		synctest.Wait()
		answer := httptest.NewRecorder()
		w.handler.ServeHTTP(answer, httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/scheduler/wait", unread{w.t}))
		if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "32 clients wait already") {
			t.Errorf("one more: %d, %s", answer.Code, answer.Body)
		}
		<-time.After(2 * time.Second)
		w.says("POST", "/scheduler/wait", `{"Keys": [""`+strings.Repeat(`,""`, 400_000)+`]}`, 413, "the body has 400002 keys and fields; the maximum is 400000")
	})
}

// TestLargeWaitsShareMemory has two large requests wait. The second one begins when the first one ends, and a
// small one waits beside them.
func TestLargeWaitsShareMemory(t *testing.T) {
	inWorld(t, func(w *world) {
		many := `{"Milliseconds": 1000, "Keys": ["a"` + strings.Repeat(`,"a"`, 90_000) + `]}`
		begun, ended := time.Now(), make(chan time.Duration, 2)
		for range 2 {
			go func() {
				w.ask("POST", "/scheduler/wait", many)
				ended <- time.Since(begun)
			}()
		}
		synctest.Wait()
		if _, took := w.waits(`{"Keys": ["a"], "Milliseconds": 100}`, func() {}); took != 100*time.Millisecond {
			t.Errorf("a small request waits for %v", took)
		}
		for _, want := range []time.Duration{time.Second, 2 * time.Second} {
			if took := <-ended; took != want {
				t.Errorf("a large request ends after %v, want %v", took, want)
			}
		}
	})
}
