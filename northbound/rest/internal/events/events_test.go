package events_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/events"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// A reader is the connection of a client. It is full after room bytes: then a write lasts until
// its deadline.
type reader struct {
	*httptest.ResponseRecorder
	room     int
	deadline time.Time
}

func (r *reader) SetWriteDeadline(at time.Time) error {
	r.deadline = at
	return nil
}

func (r *reader) Write(text []byte) (int, error) {
	if r.room -= len(text); r.room < 0 {
		<-time.After(time.Until(r.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	return r.ResponseRecorder.Write(text)
}

// inBubble runs f in virtual time, with a scheduler that does nothing.
func inBubble(t *testing.T, f func(t *testing.T, s *scheduler.Scheduler)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		f(t, s)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// serve serves one client until its stream ends, and returns what it got and for how long. room
// is in bytes.
func serve(ctx context.Context, s *events.Streams, room int, allowed func() error) (out *reader, took time.Duration, err error) {
	out = &reader{ResponseRecorder: httptest.NewRecorder(), room: room}
	begun := time.Now()
	err = s.Serve(out, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil), allowed)
	return out, time.Since(begun), err
}

// always allows a stream.
func always() error { return nil }

// A stream ends when its user may not read any more, when the server stops, when the client
// leaves, and when the client reads nothing.
func TestEnds(t *testing.T) {
	const plenty = 1 << 20
	hello := len("retry: 2000\n\nevent: hello\ndata: " + `{"Label":"vpp1","States":{},"Connections":{}}` + "\n\n")
	for _, test := range []struct {
		name     string
		room     int
		allowed  func() error
		stop     time.Duration // of the server; 0: it goes on
		leave    time.Duration // of the client
		took     time.Duration
		comments int
	}{
		{name: "the user may not read any more", room: plenty, allowed: func() error { return errors.New("logged out") }, leave: time.Hour, took: 15 * time.Second},
		{name: "the server stops", room: plenty, allowed: always, stop: 40 * time.Second, leave: time.Hour, took: 40 * time.Second, comments: 2},
		{name: "the client leaves", room: plenty, allowed: always, leave: time.Minute + time.Second, took: time.Minute + time.Second, comments: 4},
		{name: "the client reads nothing", room: 0, allowed: always, leave: time.Hour, took: 10 * time.Second},
		{name: "the client stops reading", room: hello, allowed: always, leave: time.Hour, took: 25 * time.Second},
	} {
		inBubble(t, func(t *testing.T, s *scheduler.Scheduler) {
			stopped := make(chan struct{})
			if test.stop > 0 {
				time.AfterFunc(test.stop, func() { close(stopped) })
			}
			ctx, cancel := context.WithTimeout(t.Context(), test.leave)
			defer cancel()
			got, took, err := serve(ctx, events.New(events.Options{Scheduler: s, Label: "vpp1", Ended: stopped}), test.room, test.allowed)
			if took != test.took || err != nil {
				t.Errorf("%s: after %v: %v; expected %v", test.name, took, err, test.took)
			}
			if n := strings.Count(got.Body.String(), ": alive\n\n"); n != test.comments {
				t.Errorf("%s: %d comments; expected %d in:\n%s", test.name, n, test.comments, got.Body)
			}
			if test.room == plenty && !got.deadline.IsZero() {
				t.Errorf("%s: the deadline of a write stays; the next idle time would end the stream", test.name)
			}
		})
	}
}

// A source has an event when its state differs from that a second ago, and none otherwise.
func TestSources(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scheduler.Scheduler) {
		begun := time.Now()
		sources := func() []wire.Source {
			if time.Since(begun) < 5*time.Second {
				return []wire.Source{{Name: "etcd", State: "lost"}}
			}
			return []wire.Source{{Name: "etcd", State: "synced", Keys: 3}}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, _, _ := serve(ctx, events.New(events.Options{Scheduler: s, Sources: sources}), 1<<20, always)
		const want = "event: sources\ndata: {\"Names\":[\"etcd\"]}\n\n"
		if n := strings.Count(got.Body.String(), "event: sources"); n != 1 || !strings.Contains(got.Body.String(), want) {
			t.Errorf("%d events of sources; expected one in:\n%s", n, got.Body)
		}
	})
}

// The client beyond MaxClients is told to come again.
func TestMaxClients(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scheduler.Scheduler) {
		streams := events.New(events.Options{Scheduler: s})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, events.MaxClients)
		for range events.MaxClients {
			go func() {
				_, _, err := serve(ctx, streams, 1<<20, always)
				ended <- err
			}()
		}
		synctest.Wait()
		got, _, err := serve(t.Context(), streams, 1<<20, always)
		if !errors.Is(err, events.ErrFull) || got.Header().Get("Retry-After") == "" {
			t.Errorf("one more: %v, %v", err, got.Header())
		}
		cancel()
		for range events.MaxClients {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}
