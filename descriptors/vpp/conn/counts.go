package conn

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"
)

// A MessageCount counts the requests with one message.
type MessageCount struct {
	Requests, Done, Replies uint64
	// Errors counts failed requests by reason: the name of VPP's error, "not connected",
	// "no answer", or "other".
	Errors map[string]uint64
	// Took is the time from the request to the last answer of those that were done. A dump or
	// a batch counts with the time of the whole call. Shortest and Longest are those of one call.
	Took, Shortest, Longest time.Duration
	// Buckets has the number of those that took at most the duration of the same index in
	// CountBounds, and longer than the one before it.
	Buckets [countBuckets]uint64
}

const countBuckets = 8

// CountBounds returns the upper bounds of MessageCount.Buckets, in ascending order.
func CountBounds() [countBuckets]time.Duration {
	const us, ms = time.Microsecond, time.Millisecond
	return [...]time.Duration{100 * us, 500 * us, 1 * ms, 5 * ms, 25 * ms, 100 * ms, 1000 * ms, 10_000 * ms}
}

// counts has the counts of all connections of a Manager.
type counts struct {
	mu        sync.Mutex
	byMessage map[string]*MessageCount
}

// add counts the requests of a call that has ended.
func (c *counts) add(one *call, took time.Duration, err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byMessage == nil {
		c.byMessage = map[string]*MessageCount{}
	}
	for i := range one.awaits {
		a := &one.awaits[i]
		name := a.request.GetMessageName()
		m := c.byMessage[name]
		if m == nil {
			m = &MessageCount{Errors: map[string]uint64{}}
			c.byMessage[name] = m
		}
		m.Requests++
		m.Replies += uint64(a.got.details)
		if a.answered && a.reply != nil {
			m.Replies++
		}
		switch {
		case a.refused != nil:
			m.Errors[category(a.refused)]++
		case !a.answered && err != nil:
			m.Errors[category(err)]++
		default:
			m.done(took)
		}
	}
}

func (m *MessageCount) done(took time.Duration) {
	if m.Done == 0 || took < m.Shortest {
		m.Shortest = took
	}
	m.Done++
	m.Took += took
	m.Longest = max(m.Longest, took)
	for i, bound := range CountBounds() {
		if took <= bound {
			m.Buckets[i]++
			return
		}
	}
}

// category returns a short reason, of which there are few.
func category(err error) string {
	if refusal, is := errors.AsType[*Refusal](err); is {
		return refusal.Unwrap().Error()
	}
	switch {
	case errors.Is(err, ErrLost):
		return "not connected"
	case errors.Is(err, ErrHung), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "no answer"
	}
	return "other"
}

// Requests returns the counts by message since the Manager was made.
func (m *Manager) Requests() map[string]MessageCount {
	m.counts.mu.Lock()
	defer m.counts.mu.Unlock()
	out := make(map[string]MessageCount, len(m.counts.byMessage))
	for name, c := range m.counts.byMessage {
		one := *c
		one.Errors = maps.Clone(c.Errors)
		out[name] = one
	}
	return out
}
