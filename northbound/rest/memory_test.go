package rest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/northbound/rest/internal/deadline"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A plan is written item by item, in the shape of the whole.
func TestPlanIsWrittenAsAWhole(t *testing.T) {
	operations := []wire.Operation{{Operation: "CREATE", Key: "config/a"}, {Operation: "DELETE", Key: "config/<b>"}}
	for _, want := range []wire.Plan{
		{Operations: []wire.Operation{}, Invalid: []wire.Invalid{}},
		{Operations: operations, Invalid: []wire.Invalid{{Line: 3, Error: "bad"}}},
		{Operations: operations[:1], Invalid: []wire.Invalid{}, Unknown: []wire.Unknown{{Descriptor: "route", Reason: "vpp: unplugged"}}},
		{Operations: operations[:1], Invalid: []wire.Invalid{}, Warnings: []wire.Warning{{Key: "config/a", Text: "ignored"}, {Key: "config/a", Line: 7, Text: "spelled"}}},
	} {
		w := httptest.NewRecorder()
		if err := reply.Plan(w, slices.Values(want.Operations), want); err != nil {
			t.Fatal(err)
		}
		var whole bytes.Buffer
		reply.Encode(&whole, "", want)
		if w.Body.String() != whole.String() {
			t.Errorf("the answer is\n%s\nwant\n%s", w.Body, &whole)
		}
	}
}

// The invalid values of a body are named up to a number, also if it is the content of a source.
func TestInvalidItemsAreCounted(t *testing.T) {
	declaring(t, func(w *world) {
		for _, path := range []string{"/scheduler/plan", "/scheduler/plan?as=lab&new=1"} {
			body := strings.NewReader("data: [1" + strings.Repeat(",1", 5000) + "]")
			answer := httptest.NewRecorder()
			w.handler.ServeHTTP(answer, httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, path, body))
			if n := strings.Count(answer.Body.String(), `"Error"`); n != maxInvalid+1 || !strings.Contains(answer.Body.String(), `"and 4001 more are invalid"`) {
				w.t.Errorf("%s: %d errors, want %d and the count of the others; the answer ends with %s", path, n, maxInvalid, answer.Body.Bytes()[max(0, answer.Body.Len()-200):])
			}
		}
	})
}

// A client that reads nothing of an expensive answer soon loses it, and so does one that reads too
// slowly. Then it is the turn of others.
func TestUnreadAnswersAreBrokenOff(t *testing.T) {
	for name, test := range map[string]struct {
		pause, limit, want time.Duration // between readings, of an answer, until it is broken off
	}{
		"none is read":       {time.Hour, -1, maxUnread},
		"some is read":       {maxUnread / 2, time.Minute, time.Minute},
		"all the time it is": {time.Second, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				ended := make(chan time.Duration, 1)
				h := &handler{Options: Options{answerTime: test.limit}, turns: make(chan struct{}, 1)}
				if test.limit < 0 {
					h.answerTime = deadline.Never
				}
				e := h.limited(endpoint.Endpoint{Expensive: true, Serve: func(w http.ResponseWriter, _ *http.Request, _ endpoint.Query) error {
					begun := time.Now()
					for range 100 {
						if _, err := w.Write(make([]byte, 4<<10)); err != nil {
							ended <- time.Since(begun)
							return nil
						}
					}
					ended <- 0
					return nil
				}})
				server := http.Server{Handler: http.HandlerFunc(e.Handle), WriteTimeout: deadline.Never}
				l := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
				l.conn <- far
				go func() { _ = server.Serve(l) }() // ends with Close
				var reader sync.WaitGroup
				reader.Go(func() {
					fmt.Fprint(near, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
					for {
						<-time.After(test.pause)
						if _, err := near.Read(make([]byte, 4<<10)); err != nil {
							return
						}
					}
				})
				if got := <-ended; got != test.want {
					t.Errorf("the answer was broken off after %v, want %v", got, test.want)
				}
				server.Close()
				near.Close()
				reader.Wait()
			})
		})
	}
}

// A oneConn is a listener to which one connection comes.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error { close(l.closed); return nil }

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// TestPlansAreAffordable plans and checks many short values, whose text is small. Declaring them
// has no such bound: they take their memory anyway.
func TestPlansAreAffordable(t *testing.T) {
	inWorld(t, func(w *world) {
		body := `{"data":[` + strings.TrimSuffix(strings.Repeat(`{"key":"config/a","value":{}},`, 10_000), ",") + `]}`
		h := Handler(Options{Scheduler: w.sched, maxNeed: 10_000 * 1500})
		for _, path := range []string{"/scheduler/plan", "/scheduler/validate", "/configuration/validate"} {
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, path, strings.NewReader(body)))
			if answer.Code != http.StatusRequestEntityTooLarge || !strings.Contains(answer.Body.String(), "the values need about 19 MB of memory; the maximum is 14 MB") {
				w.t.Errorf("%s: status %d, %.300s", path, answer.Code, answer.Body)
			}
		}
	})
}

// Large bodies are read one at a time, and their memory is free once they are answered.
func TestBodiesShareMemory(t *testing.T) {
	inWorld(t, func(w *world) {
		memory := budget.New(1 << 20)
		h := Handler(Options{Scheduler: w.sched, Memory: memory})
		body := "data:\n" + strings.Repeat("- {key: config/a, value: {name: a}}\n", 2000)
		ask := func(ctx context.Context, path string) int {
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body)))
			return answer.Code
		}
		leave, err := memory.Enter(w.t.Context(), 1<<20)
		if err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		if code := ask(ctx, "/scheduler/plan"); code == http.StatusOK {
			w.t.Error("a plan was made although another request has the memory")
		}
		leave()
		for _, path := range []string{"/scheduler/plan", "/scheduler/validate", "/configuration/validate"} {
			if code := ask(w.t.Context(), path); code >= http.StatusInternalServerError {
				w.t.Errorf("%s: status %d", path, code)
			}
			if inside, waiting := memory.Inside(); inside != 0 || waiting != 0 {
				w.t.Errorf("%s: %d bytes are still taken, %d requests wait", path, inside, waiting)
			}
		}
	})
}
