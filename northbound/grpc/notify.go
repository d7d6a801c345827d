package grpc

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
)

// notifications are the newest notifications, numbered from 0. Any goroutine may add some.
type notifications struct {
	mu      sync.Mutex
	first   uint32                       // the number of kept[0]
	kept    []*configurator.Notification // immutable
	readers map[*wake.Signal]bool
}

// maxKept is how many notifications are kept.
const maxKept = 10_000

func newNotifications() *notifications { return &notifications{readers: map[*wake.Signal]bool{}} }

// add adds notifications, which nobody may change. It never waits for a client.
func (n *notifications) add(more ...*configurator.Notification) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept = append(n.kept, more...)
	if old := len(n.kept) - maxKept; old > 0 {
		n.kept = slices.Delete(n.kept, 0, old)
		n.first += uint32(old)
	}
	for r := range n.readers {
		r.Set()
	}
}

// since returns the kept notifications from a number on, and the number of the first of them. A number
// beyond the newest one is that of a client of an earlier process, as the next process counts from 0
// again: it gets all that are kept. It has seen none of them, so anything less would lose some.
func (n *notifications) since(number uint32) (from uint32, out []*configurator.Notification) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if end := n.first + uint32(len(n.kept)); number > end {
		number = n.first
	}
	from = max(number, n.first)
	return from, slices.Clone(n.kept[from-n.first:])
}

// open adds a reader, which each add wakes. The reader keeps the number of its next
// notification, so a slow one delays nobody.
func (n *notifications) open() *wake.Signal {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := wake.New()
	n.readers[&r] = true
	return &r
}

// close removes a reader whose stream has ended.
func (n *notifications) close(r *wake.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.readers, r)
}

// maxFilters is how many filters a call of Notify may have: each is compared with each notification.
const maxFilters = 100

// Notify sends the notifications from a number on, and then each new one. A client that reads
// slowly misses those that are dropped meanwhile; next_idx shows the gap.
func (c *config) Notify(req *configurator.NotifyRequest, stream configurator.ConfiguratorService_NotifyServer) error {
	if n := len(req.GetFilters()); n > maxFilters {
		return status.Errorf(codes.ResourceExhausted, "there are %d filters; the maximum is %d", n, maxFilters)
	}
	ready := c.events.open()
	defer c.events.close(ready)
	for next := req.GetIdx(); ; {
		from, news := c.events.since(next)
		for i, one := range news {
			next = from + uint32(i) + 1
			if !passes(one, req.GetFilters()) {
				continue
			}
			if err := stream.Send(&configurator.NotifyResponse{NextIdx: next, Notification: one}); err != nil {
				return err
			}
		}
		if err := await(stream.Context(), c.ended, ready.C()); err != nil {
			return err
		}
	}
}

// await waits for a token, for the end of the call, or for that of the server.
func await[T any](ctx context.Context, ended <-chan struct{}, token <-chan T) error {
	select {
	case <-token:
		return nil
	case <-ended:
		return status.Error(codes.Unavailable, "the agent stops")
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// passes reports whether a notification has everything that one of the filters has. Without
// filters each passes.
func passes(n *configurator.Notification, filters []*configurator.Notification) bool {
	return len(filters) == 0 || slices.ContainsFunc(filters, func(f *configurator.Notification) bool {
		merged := proto.Clone(n)
		proto.Merge(merged, f)
		return proto.Equal(merged, n)
	})
}
