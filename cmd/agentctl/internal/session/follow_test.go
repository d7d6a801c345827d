package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A transport answers requests one after the other.
type transport func() (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transport) RoundTrip(*http.Request) (*http.Response, error) { return f() }

// response returns an answer.
func response(status int, text string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}
}

// TestFollowTellsEachLoss loses an agent twice. Attempts that fail while it is lost are not told.
func TestFollowTellsEachLoss(t *testing.T) {
	for name, c := range map[string]struct {
		// What each request for events gets: h a stream that ends after the event hello, r no
		// connection, n that there are no events. The last one counts for all later ones.
		answers string
		// What each call for news ends with: o success, l a lost connection. After the last one the
		// user has seen enough.
		news string
	}{
		"at the end of streams":       {"hrrhrrh", "ooo"},
		"also while news are read":    {"h", "oloo"},
		"an agent without events":     {"n", "ololo"},
		"without events, not at once": {"n", "oollolllo"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				var errs bytes.Buffer
				requests, calls := 0, 0
				events := func() (*http.Response, error) {
					requests++
					switch c.answers[min(requests, len(c.answers))-1] {
					case 'h':
						return response(http.StatusOK, "event: hello\ndata: {}\n\n"), nil
					case 'n':
						return response(http.StatusNotFound, `{"Error": "no such path"}`), nil
					}
					return nil, errors.New("no connection")
				}
				s := &Session{Streams: Streams{Out: io.Discard, Err: &errs}}
				s.Timeout = time.Minute
				s.target = &agentClient{URL: url.URL{Scheme: "http", Host: "agent"}, name: "the test", http: http.Client{Transport: transport(events)}}
				err := s.Follow(ctx, func(context.Context, News) error {
					calls++
					if c.news[calls-1] == 'l' {
						return RemoteError{errors.New("the connection is lost")}
					}
					if calls == len(c.news) {
						end()
					}
					return nil
				})
				if err != nil || calls != len(c.news) {
					t.Errorf("Follow ends with %v after %d news, want %d", err, calls, len(c.news))
				}
				if n := strings.Count(errs.String(), "agentctl: trying again: "); n != 2 {
					t.Errorf("%d losses are told, want 2:\n%s", n, &errs)
				}
			})
		})
	}
}
