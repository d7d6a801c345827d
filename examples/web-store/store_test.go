package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// A server has the object, and is down for a while.
type server struct {
	mu      sync.Mutex
	all     map[string]json.RawMessage
	down    bool
	refused chan struct{} // has a token when a request was refused
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		select {
		case s.refused <- struct{}{}:
		default: // there is one
		}
		return
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(s.all) // an error means that the client has gone
}

// txn makes changes at once.
func (s *server) txn(events []kvdbsync.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		if e.Value == nil {
			delete(s.all, e.Key)
		} else {
			s.all[e.Key] = e.Value
		}
	}
}

// cut interrupts the watch, which ends before the store changes.
func (s *server) cut(during func()) {
	s.setDown(true)
	defer s.setDown(false)
	<-s.refused
	during()
}

func (s *server) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func TestConformance(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Harness {
		s := &server{all: map[string]json.RawMessage{}, refused: make(chan struct{}, 1)}
		web := httptest.NewServer(s)
		t.Cleanup(web.Close)
		return conformance.Harness{
			Connector: &store{url: web.URL, period: time.Millisecond, bounds: kvdbsync.Bounds{}.WithDefaults()},
			Put:       func(key string, value []byte) { s.txn([]kvdbsync.Event{{Key: key, Value: value}}) },
			Delete:    func(key string) { s.txn([]kvdbsync.Event{{Key: key}}) },
			Txn:       s.txn, Cut: s.cut, JSONOnly: true, Same: same,
		}
	})
}

// same compares JSON without its spaces.
func same(got, put []byte) bool {
	var a, b bytes.Buffer
	return json.Compact(&a, got) == nil && json.Compact(&b, put) == nil && bytes.Equal(a.Bytes(), b.Bytes())
}
