package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A store is a JSON object at a URL: {"/vnf-agent/vpp1/config/...": {"name": ...}}.
type store struct {
	url    string
	period time.Duration
	bounds kvdbsync.Bounds
}

// Watch implements kvdbsync.Connector: it yields all keys once, and then what differs between two answers. One
// answer is one state of the store, so its differences are one Batch.
func (s *store) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return kvdbsync.Stream(ctx, func(emit func(kvdbsync.Batch) error) error {
		web := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
		defer web.CloseIdleConnections() // a watch that has ended leaves nothing
		var known map[string]json.RawMessage
		tick := time.NewTicker(s.period)
		defer tick.Stop()
		for {
			now, err := s.get(ctx, web, prefix)
			if err != nil {
				return err // the source calls Watch again, later and later
			}
			if events := differences(known, now); known == nil || len(events) > 0 {
				if err := emit(kvdbsync.Batch{Events: events, Synced: true}); err != nil {
					return err
				}
			}
			known = now
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
}

// get returns the values below prefix.
func (s *store) get(ctx context.Context, web *http.Client, prefix string) (map[string]json.RawMessage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := web.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", s.url, answer.Status)
	}
	// A server that never stops writing must not take all memory.
	text, err := io.ReadAll(io.LimitReader(answer.Body, s.bounds.Page+1))
	if err == nil && int64(len(text)) > s.bounds.Page {
		err = fmt.Errorf("%s has more than %d bytes", s.url, s.bounds.Page)
	}
	all := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	maps.DeleteFunc(all, func(key string, _ json.RawMessage) bool { return !strings.HasPrefix(key, prefix) })
	return all, err
}

// differences returns the events that make one state of another, sorted by key.
func differences(known, now map[string]json.RawMessage) (out []kvdbsync.Event) {
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if old, ok := known[key]; !ok || !bytes.Equal(old, now[key]) {
			out = append(out, kvdbsync.Event{Key: key, Value: now[key]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if _, ok := now[key]; !ok {
			out = append(out, kvdbsync.Event{Key: key})
		}
	}
	return out
}
