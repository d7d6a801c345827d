package rest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// Expensive requests take turns. One that waits too long is told so, and cheap ones never wait.
func TestExpensiveRequestsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{turns: make(chan struct{}, maxExpensive)}
		var mu sync.Mutex // guards running and most
		running, most := 0, 0
		change := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		e := h.limited(endpoint.Endpoint{Expensive: true, Serve: func(http.ResponseWriter, *http.Request, endpoint.Query) error {
			change(1)
			<-time.After(expensiveWait - time.Second)
			change(-1)
			return nil
		}})
		status := make(chan int, 3*maxExpensive)
		for range cap(status) {
			go func() {
				w := httptest.NewRecorder()
				e.Handle(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
				status <- w.Code
			}()
		}
		count := map[int]int{}
		for range cap(status) {
			count[<-status]++
		}
		if most != maxExpensive || count[200] != 2*maxExpensive || count[503] != maxExpensive {
			t.Errorf("%d at once, answers %v; want %d, and %d of 200, %d of 503", most, count, maxExpensive, 2*maxExpensive, maxExpensive)
		}
	})
}

// Requests that wait for a system that does not answer leave a slot to those that do not need it.
func TestReadersOfTheSystemLeaveSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{turns: make(chan struct{}, maxExpensive), reading: make(chan struct{}, maxReading)}
		waits, answered := 0, make(chan struct{})
		dump := h.limited(endpoint.Endpoint{Expensive: true, ReadsBack: true, Serve: func(http.ResponseWriter, *http.Request, endpoint.Query) error {
			waits++
			<-answered
			return nil
		}})
		ask := func(e endpoint.Endpoint) int {
			w := httptest.NewRecorder()
			e.Handle(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			return w.Code
		}
		var all sync.WaitGroup
		for range 3 * maxExpensive {
			all.Go(func() { ask(dump) })
		}
		synctest.Wait()
		if waits != maxReading {
			t.Errorf("%d requests wait for the system, want %d", waits, maxReading)
		}
		begun := time.Now()
		other := h.limited(endpoint.Endpoint{Expensive: true, Serve: func(http.ResponseWriter, *http.Request, endpoint.Query) error { return nil }})
		if code, took := ask(other), time.Since(begun); code != http.StatusOK || took > 0 {
			t.Errorf("another request is answered with %d after %v", code, took)
		}
		close(answered)
		all.Wait()
	})
}

// Clients that send a part of a body and then nothing hold no slot.
func TestUnsentBodiesHoldNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{Options: Options{MaxBody: defaultMaxBody}, turns: make(chan struct{}, maxExpensive), largeBodies: make(chan struct{}, 1)}
		e := h.limited(endpoint.Endpoint{Method: http.MethodPost, Body: "application/json", Expensive: true, Serve: func(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
			_, err := h.textOf(w, r)
			return err
		}})
		ask := func(body io.Reader) int {
			w := httptest.NewRecorder()
			e.Handle(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
			return w.Code
		}
		var stuck sync.WaitGroup
		for _, sent := range []int{1, 1 << 20} {
			for range 2 * maxExpensive {
				body, client := io.Pipe()
				stuck.Go(func() { ask(body) })
				go func() { _, _ = client.Write(make([]byte, sent)) }()
				defer client.Close()
			}
		}
		synctest.Wait()
		if code := ask(strings.NewReader("1")); code != http.StatusOK {
			t.Errorf("another request is answered with %d", code)
		}
	})
}

// One large body is in memory at a time, until its answer. Others pass it, also of unknown length. One that
// waits too long is told so.
func TestLargeBodiesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{Options: Options{MaxBody: defaultMaxBody}, turns: make(chan struct{}, maxExpensive), largeBodies: make(chan struct{}, 1)}
		large, small, done := 0, 0, make(chan struct{})
		e := h.limited(endpoint.Endpoint{Method: http.MethodPost, Body: "application/json", Expensive: true, Serve: func(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
			text, err := h.textOf(w, r)
			switch {
			case err != nil:
				return err
			case len(text) < 1000:
				small++
				return nil
			}
			large++
			<-done
			return nil
		}})
		ask := func(length int) int {
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("x", length)))
			r.ContentLength = -1 // unknown
			e.Handle(w, r)
			return w.Code
		}
		var first sync.WaitGroup
		first.Go(func() { ask(1 << 20) })
		synctest.Wait()
		begun := time.Now()
		if code := ask(10); large != 1 || small != 1 || code != http.StatusOK {
			t.Errorf("%d large and %d small bodies were read, want 1 and 1; the answer is %d", large, small, code)
		}
		if code, took := ask(1<<20), time.Since(begun); code != http.StatusServiceUnavailable || took != expensiveWait {
			t.Errorf("another large body is answered with %d after %v, want %d after %v", code, took, http.StatusServiceUnavailable, expensiveWait)
		}
		close(done)
		first.Wait()
	})
}

// TestDumpsAreBounded dumps a system with very many values, over TCP and on the socket.
func TestDumpsAreBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		const many = 2000
		w.mu.Lock()
		for i := range many {
			name := fmt.Sprint("many", i)
			w.stands[ifPrefix+name] = &interfaces.Interface{Name: name, Type: interfaces.Interface_DUMMY}
		}
		w.mu.Unlock()
		for _, path := range []string{"/dump/linux/v2/interfaces", "/scheduler/dump?key-prefix=" + ifPrefix} {
			for most, want := range map[int64]string{0: fmt.Sprint("many", many-1), many * 600: fmt.Sprint("many", many-1), many * 300: "the values need too much memory"} {
				answer := httptest.NewRecorder()
				Handler(Options{Scheduler: w.sched, maxNeed: most}).ServeHTTP(answer, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, path, nil))
				if !strings.Contains(answer.Body.String(), want) {
					w.t.Errorf("%s with a bound of %d bytes: status %d, %.300s", path, most, answer.Code, answer.Body)
				}
			}
		}
	})
}

// Connections that are never used do not keep others out for ever, and no more than the limit
// are accepted.
func TestConnectionsAreLimited(t *testing.T) {
	const limit = 3
	_, ready, _ := serveWith(t, Config{Endpoint: "127.0.0.1:0", MaxConnections: limit, ReadHeaderTimeout: time.Second})
	addr := <-ready
	var idle []net.Conn
	for range 2 * limit {
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		idle = append(idle, conn)
	}
	last := idle[len(idle)-1]
	fmt.Fprintf(last, "GET /info/version HTTP/1.1\r\nHost: %s\r\n\r\n", addr)
	answer, err := http.ReadResponse(bufio.NewReader(last), nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("after idle connections: %v, %v", answer, err)
	}
	answer.Body.Close()
	for _, conn := range idle[:limit] { // the answer came only after these had been closed
		if err := conn.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("more than %d connections at once: %v", limit, err)
		}
	}
}

// TestAnswersOfManyValuesTakeTurns asks for many values while other requests have all turns. Those for
// one value, and for the sources themselves, do not wait.
func TestAnswersOfManyValuesTakeTurns(t *testing.T) {
	inWorld(t, func(w *world) {
		h := &handler{Options: w.options(), sched: w.sched, turns: make(chan struct{}, maxExpensive)}
		for range maxExpensive {
			h.turns <- struct{}{}
		}
		for path, want := range map[string]int{
			"/sources": 200, "/sources?key=" + ifPrefix + "a": 200, "/sources?key-prefix=config": 503,
			"/scheduler/status": 503, "/scheduler/status?key-prefix=config": 503, "/scheduler/status?key=" + ifPrefix + "a": 200,
			"/scheduler/explain?key=a": 503, "/scheduler/stats": 503,
		} {
			at, _, _ := strings.Cut(path, "?")
			for _, e := range slices.Concat(h.aboutAgent(), h.schedulerPaths()) {
				if e.Path != at {
					continue
				}
				answer := httptest.NewRecorder()
				h.limited(e).Handle(answer, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, path, nil))
				if answer.Code != want {
					w.t.Errorf("%s: status %d, want %d: %.100s", path, answer.Code, want, answer.Body)
				}
			}
		}
	})
}
