package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/events"
	"github.com/keyplane/keyplane/northbound/rest/wire/stream"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// A listener reads GET /events of a handler.
type listener struct {
	header http.Header
	status int
	leave  func() // ends the request
	ended  chan struct{}

	mu     sync.Mutex
	text   strings.Builder
	closed chan struct{} // not nil: the client reads nothing until it is closed
}

func (l *listener) Header() http.Header { return l.header }

func (l *listener) WriteHeader(status int) { l.status = status }

func (l *listener) Flush() {}

func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed != nil {
		<-closed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// hold makes the client slow, until the returned function is called.
func (l *listener) hold() (release func()) {
	closed := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = closed
	return func() {
		l.mu.Lock()
		l.closed = nil
		l.mu.Unlock()
		close(closed)
	}
}

// take returns the events since the last call, one per line, without comments. It waits for
// the collection of changes.
func (l *listener) take() (out []string) {
	<-time.After(time.Second)
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for block := range strings.SplitSeq(l.text.String(), "\n\n") {
		name, data, ok := strings.Cut(block, "\ndata: ")
		if name, event := strings.CutPrefix(name, "event: "); ok && event {
			out = append(out, name+" "+data)
		}
	}
	l.text.Reset()
	return out
}

// listen begins to read the events of the world's handler. The caller calls leave and waits
// for ended.
func (w *world) listen(headers ...string) *listener {
	ctx, cancel := context.WithCancel(context.Background())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	l := &listener{header: http.Header{}, leave: cancel, ended: make(chan struct{})}
	handler := w.handler
	go func() {
		defer close(l.ended)
		handler.ServeHTTP(l, r)
	}()
	synctest.Wait()
	return l
}

// end ends the stream and waits until nothing of it is left.
func (l *listener) end() {
	l.leave()
	<-l.ended
}

// expect compares the events since the last call.
func (w *world) hears(l *listener, want ...string) {
	w.t.Helper()
	if got := l.take(); !slices.Equal(got, want) {
		w.t.Errorf("events:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// dummy is an interface without dependencies.
func dummy(name string, mtu uint32) *interfaces.Interface {
	return &interfaces.Interface{Name: name, Type: interfaces.Interface_DUMMY, Mtu: mtu}
}

func TestEventsTellWhatChanges(t *testing.T) {
	inWorld(t, func(w *world) {
		w.must(w.commit("before", dummy("if1", 0)))
		l := w.listen()
		defer l.end()
		w.hears(l, `hello {"Label":"vpp1","States":{"CONFIGURED":2},"Connections":{}}`)
		if got := l.header.Get("Content-Type"); l.status != http.StatusOK || got != "text/event-stream" {
			t.Errorf("the answer is %d %s", l.status, got)
		}
		w.must(w.commit("one", dummy("if2", 0)))
		w.hears(l,
			`values {"Changed":[{"Key":"config/linux/interfaces/v2/interface/if2","State":"CONFIGURED"},{"Key":"linux/interface/state/if2/UP","State":"CONFIGURED"}],"Missed":false,"States":{"CONFIGURED":4}}`,
			`transactions {"Count":1}`)
		// Two transactions in quick succession are one event.
		w.must(w.commit("two", dummy("if2", 1400)))
		if w.commit("three", dummy("if2", 10000)) == nil {
			t.Error("the invalid value was accepted")
		}
		w.hears(l,
			`values {"Changed":[{"Key":"config/linux/interfaces/v2/interface/if2","State":"INVALID"},{"Key":"linux/interface/state/if2/UP","State":"REMOVED"}],"Missed":false,"States":{"CONFIGURED":2,"INVALID":1}}`,
			`transactions {"Count":2}`)
		<-time.After(time.Hour)
		w.hears(l) // nothing happens: only comments
	})
}

// TestEventsTellASlowReader changes more values than an event names while the client does not
// read. It learns that it missed something, and goes on.
func TestEventsTellASlowReader(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.listen()
		defer l.end()
		l.take()
		release := l.hold()
		w.must(w.commit("this is being written", dummy("if0", 0)))
		<-time.After(time.Second)
		for i := range 300 {
			w.must(w.commit("", dummy(fmt.Sprintf("if%d", i), 1400)))
		}
		synctest.Wait()
		release()
		got := l.take()
		if want := []string{`values {"Changed":[],"Missed":true,"States":{"CONFIGURED":600}}`, `transactions {"Count":300}`}; len(got) != 4 || !slices.Equal(got[2:], want) {
			t.Errorf("events:\n%s\nwant the first change, and\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		w.must(w.commit("", dummy("if0", 0)))
		w.hears(l, `values {"Changed":[{"Key":"config/linux/interfaces/v2/interface/if0","State":"CONFIGURED"},{"Key":"linux/interface/state/if0/UP","State":"CONFIGURED"}],"Missed":false,"States":{"CONFIGURED":600}}`, `transactions {"Count":1}`)
	})
}

// changingSources are sources whose state the test sets.
type changingSources struct {
	knownSources
	mu  sync.Mutex
	now []orchestrator.Health
}

func (s *changingSources) Health() []orchestrator.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// set sets the number of keys of each source.
func (s *changingSources) set(keys map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = nil
	for name, n := range keys {
		h := orchestrator.Health{}
		h.Source, h.Keys = name, n
		s.now = append(s.now, h)
	}
}

func TestEventsTellSourcesAndConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sched := scheduler.New(scheduler.Options{})
		link, err := sched.Connection("vpp")
		if err != nil {
			t.Fatal(err)
		}
		sources := &changingSources{}
		sources.set(map[string]int{"etcd": 1, "old": 1})
		w := &world{t: t, sched: sched, handler: Handler(Options{Scheduler: sched, Sources: sources})}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- sched.Run(ctx) }()
		l := w.listen()
		w.hears(l, `hello {"Label":"","States":{},"Connections":{"vpp":false}}`)
		sources.set(map[string]int{"etcd": 2, "new": 1})
		link.Ready()
		w.hears(l, `transactions {"Count":1}`, `connections {"Connections":{"vpp":true}}`, `sources {"Names":["etcd","new","old"]}`)
		<-time.After(time.Minute)
		w.hears(l)
		l.end()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestEventsHaveFewReaders opens as many streams as there may be. The next one is refused until
// one ends.
func TestEventsHaveFewReaders(t *testing.T) {
	inWorld(t, func(w *world) {
		var all []*listener
		for range events.MaxClients {
			all = append(all, w.listen())
		}
		late := w.listen()
		<-late.ended
		if late.status != http.StatusServiceUnavailable || late.header.Get("Retry-After") == "" {
			t.Errorf("one more: %d %s", late.status, late.text.String())
		}
		all[0].end()
		again := w.listen()
		if again.status != http.StatusOK {
			t.Errorf("after one has left: %d", again.status)
		}
		again.end()
		for _, l := range all {
			l.end()
		}
	})
}

// TestEventsEndWithTheirToken logs a user out who reads events.
func TestEventsEndWithTheirToken(t *testing.T) {
	inWorld(t, func(w *world) {
		w.guarded()
		if l := w.listen(); l.status != http.StatusUnauthorized {
			t.Errorf("without a user: %d", l.status)
		}
		ann := []string{"Authorization", "Bearer " + w.token("ann")}
		l := w.listen(ann...)
		<-time.After(time.Minute)
		w.hears(l, `hello {"Label":"vpp1","States":{},"Connections":{}}`)
		if rec := w.askWith(http.MethodPost, "/logout", "", ann...); rec.Code != http.StatusOK {
			t.Fatal(rec.Code, rec.Body)
		}
		<-time.After(time.Minute)
		<-l.ended
	})
}

// pipes is a listener of connections in memory, whose deadlines are those of the bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// connect runs a server, and sends it a request. stop ends the server and waits for it.
func (w *world) connect(c Config, request string) (answer *http.Response, stop func()) {
	w.t.Helper()
	w.must(c.Complete())
	s := Server{Config: c, Options: w.options()}
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	ctx, end := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, l, slog.New(slog.DiscardHandler)) }()
	near, far := net.Pipe()
	l.conns <- far
	_, err := io.WriteString(near, request)
	w.must(err)
	answer, err = http.ReadResponse(bufio.NewReader(near), nil)
	w.must(err)
	return answer, func() {
		end()
		_, _ = io.Copy(io.Discard, answer.Body)
		w.must(<-ended)
		near.Close()
	}
}

// TestEventsOfAServer reads events for longer than all limits of time of the server, and then
// stops the server: the stream ends at once, and does not use up the time for requests in
// progress.
func TestEventsOfAServer(t *testing.T) {
	inWorld(t, func(w *world) {
		answer, stop := w.connect(Config{ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Second},
			"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		next := func(name string, into any) {
			t.Helper()
			for lines.Scan() {
				if event, ok := strings.CutPrefix(lines.Text(), "event: "); ok && event == name {
					lines.Scan()
					w.must(json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), into))
					return
				}
			}
			t.Fatalf("the stream ended before an event %s: %v", name, lines.Err())
		}
		var hello stream.Hello
		next(stream.NameHello, &hello)
		changed := make(chan error, 1)
		go func() {
			<-time.After(time.Hour)
			changed <- w.commit("late", dummy("if1", 0))
		}()
		var values stream.ValuesChanged
		next(stream.NameValues, &values)
		w.must(<-changed)
		if len(values.Changed) != 2 || values.States["CONFIGURED"] != 2 {
			t.Errorf("after an hour the event is %+v", values)
		}
		begun := time.Now()
		stop()
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("the server needs %v of virtual time to stop", took)
		}
	})
}
