// Package changes tells which values of a scheduler have changed and how many transactions have
// ended. It is for readers that nobody trusts to be fast, such as clients in a network: unlike a
// scheduler.Watch, a Collector is bounded.
//
//	c := changes.Collect(s, 1000)
//	defer c.Close()
//	all := s.Statuses("") // after Collect, so that no change falls between both
//	for range c.Ready() {
//		news := c.Take()
//		...
//	}
package changes

import (
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/internal/published"
	"github.com/keyplane/keyplane/scheduler/internal/watch"
)

// A Collector has the changes since the last Take. One goroutine reads it; Close ends it.
type Collector struct {
	recent *watch.Recent[*published.Status]
	status func(*published.Status) *scheduler.Status
}

// News are the changes since the last Take of a Collector.
type News struct {
	// Values are the newest statuses of the values that have changed, in no order. A removed
	// value is REMOVED.
	Values []*scheduler.Status
	// Missed means that more values have changed than there is room for. Values is empty then,
	// and the reader has to read all statuses again.
	Missed bool
	// Transactions is the number of transactions that have ended. History has them already.
	Transactions uint64
}

// Collect begins to collect changes, of up to most values at once. It does not begin with the
// present statuses: a reader calls Collect first and then reads them, so it misses nothing.
func Collect(s *scheduler.Scheduler, most int) *Collector {
	inside := s.Inside()
	return &Collector{inside.Recent(most), inside.Status}
}

// Ready has a token when Take may return changes.
func (c *Collector) Ready() <-chan struct{} { return c.recent.Ready() }

// Take returns the changes since the last call, without waiting.
func (c *Collector) Take() News {
	news := c.recent.Take()
	out := News{Missed: news.Missed, Transactions: news.Marks}
	for _, x := range news.Items {
		out.Values = append(out.Values, c.status(x))
	}
	return out
}

// Close ends the collection.
func (c *Collector) Close() { c.recent.Close() }
