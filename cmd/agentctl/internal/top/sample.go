package top

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/counts"
)

// A sample is the state of the agent's counters at one moment.
type sample struct {
	at      time.Time
	stats   counts.Stats
	sources []wire.Source // the highest priority first
}

// read asks the agent for its counters. An agent without sources has none in the sample.
func read(ctx context.Context, s *session.Session) (*sample, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	out := &sample{at: time.Now()}
	if err := s.Get(ctx, "/scheduler/stats", nil, &out.stats); err != nil {
		return nil, err
	}
	err := s.Get(ctx, "/sources", nil, &out.sources)
	if refused, ok := errors.AsType[session.StatusError](err); ok && refused.Status == http.StatusNotFound {
		err = nil
	}
	return out, err
}

// operations returns the number of executed operations.
func (s *sample) operations() (n uint64) {
	for _, count := range s.stats.TxnStats.OperationCount {
		n += count
	}
	return n
}

// rate returns the increase of a counter per second. It is unknown without an earlier sample, and
// after a restart of the agent, which begins with zero.
func rate(before, now *sample, count func(*sample) uint64) (perSecond float64, known bool) {
	if before == nil || !now.at.After(before.at) || count(now) < count(before) {
		return 0, false
	}
	return float64(count(now)-count(before)) / now.at.Sub(before.at).Seconds(), true
}

// A verb is one verb of one descriptor.
type verb struct {
	descriptor string
	counts.Method
}

// verbs returns the verbs that were called, by descriptor and name.
func (s *sample) verbs() (out []verb) {
	for name, methods := range s.stats.Descriptors {
		for _, m := range methods {
			if m.Count > 0 {
				out = append(out, verb{name, m})
			}
		}
	}
	return out
}

// calls returns the number of calls of a verb.
func (s *sample) calls(v verb) uint64 {
	for _, m := range s.stats.Descriptors[v.descriptor] {
		if m.Name == v.Name {
			return m.Count
		}
	}
	return 0
}
