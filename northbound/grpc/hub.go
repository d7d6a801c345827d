package grpc

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler"
)

// A hub numbers the changes of all values of models, so that a subscription can go on where
// an earlier one ended. It begins with the first subscription: without one it costs nothing.
//
// It keeps the newest change of each value, and of up to maxGone values that were removed. A
// subscription that ended before the oldest removal that was dropped begins anew with all
// values.
//
// It keeps the changes in their order, and each reader has only the number up to which it has
// taken them. So a reader costs the same however slow it is: one that has not taken a removal before it
// is dropped ends.
//
// mu guards everything.
type hub struct {
	sched *scheduler.Scheduler
	ended <-chan struct{} // closed when the server stops
	done  sync.WaitGroup

	mu      sync.Mutex
	watch   *scheduler.Watch[*scheduler.Status] // nil: not begun
	epoch   string                              // of the numbers: another process counts anew
	last    uint64                              // the number of the newest change
	newest  map[string]*change
	changes []*change // by number; also some that are no longer the newest of their values
	gone    []*change // removed values, the oldest first; also values that came back
	horizon uint64    // removals up to this number may be unknown
	readers map[*reader]bool
}

// maxGone is how many removed values the hub keeps.
const maxGone = 10_000

// A change is the state of a value since the change with a number. It is immutable.
type change struct {
	number uint64
	status *scheduler.Status
}

// A reader gets the changes of the values that it selects: the newest of each.
type reader struct {
	hub   *hub
	wants func(key string) bool
	ready wake.Signal
	after uint64 // it has the changes up to this number; guarded by hub.mu
	// It needs no removals up to this number, because it began with the values that existed then.
	began uint64
}

func newHub(sched *scheduler.Scheduler, ended <-chan struct{}) *hub {
	return &hub{sched: sched, ended: ended, newest: map[string]*change{}, readers: map[*reader]bool{}}
}

// open adds a reader. Its first changes are those after token, or all values that exist if
// token is empty or unknown; resumed says which. The caller calls close.
func (h *hub) open(token string, wants func(key string) bool) (r *reader, resumed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin()
	h.pull()
	after, resumed := h.number(token)
	r = &reader{hub: h, wants: wants, ready: wake.New(), after: after}
	if !resumed {
		r.began = h.last
	}
	h.readers[r] = true
	r.ready.Set() // even without a value: the reader learns the token
	return r, resumed
}

// begin starts the hub.
func (h *hub) begin() {
	if h.watch != nil {
		return
	}
	h.watch, h.epoch = h.sched.Watch(""), rand.Text()[:8]
	h.done.Go(func() {
		defer h.watch.Close()
		for {
			select {
			case <-h.watch.Ready():
				h.mu.Lock()
				h.pull()
				h.mu.Unlock()
			case <-h.ended:
				return
			}
		}
	})
}

// wait waits until the goroutine of the hub has ended, after ended was closed.
func (h *hub) wait() { h.done.Wait() }

// pull numbers the changes that the scheduler has published. So a subscription that begins
// after an answer has the values of that request.
func (h *hub) pull() {
	models := h.sched.Models()
	before := h.last
	for _, st := range h.watch.Take() {
		if _, _, ok := models.ByKey(st.Key); !ok || st.Base != "" {
			continue
		}
		h.last++
		c := &change{h.last, st}
		h.newest[st.Key] = c
		h.changes = append(h.changes, c)
		if c.removed() {
			h.gone = append(h.gone, c)
		}
	}
	h.forget()
	news := h.since(before)
	for r := range h.readers {
		switch {
		case slices.ContainsFunc(news, func(c *change) bool { return r.wants(c.status.Key) }):
			r.ready.Set()
		case r.after == before: // it waits for nothing, and does not fall behind
			r.after = h.last
		}
	}
}

// since returns the changes after a number, by number.
func (h *hub) since(number uint64) []*change { return h.changes[upTo(h.changes, number):] }

// upTo returns how many of the changes, which are by number, are not after a number.
func upTo(changes []*change, number uint64) int {
	at, _ := slices.BinarySearchFunc(changes, number+1, func(c *change, n uint64) int { return cmp.Compare(c.number, n) })
	return at
}

// isNewest reports whether its value has not changed after c, and is not forgotten.
func (h *hub) isNewest(c *change) bool { return h.newest[c.status.Key] == c }

// forget drops the oldest removed values beyond maxGone, and changes that are not the newest when they are half of all.
func (h *hub) forget() {
	more := max(0, len(h.gone)-maxGone)
	for _, c := range h.gone[:more] {
		h.horizon = c.number
		if h.isNewest(c) {
			delete(h.newest, c.status.Key)
		}
	}
	h.gone = slices.Delete(h.gone, 0, more)
	if len(h.changes) > 2*len(h.newest) {
		h.changes = slices.DeleteFunc(h.changes, func(c *change) bool { return !h.isNewest(c) })
	}
}

func (c *change) removed() bool { return c.status.State == scheduler.Removed }

// token says where a reader is that has all changes up to a number.
func (h *hub) token(number uint64) string { return fmt.Sprintf("%s-%d", h.epoch, number) }

// number is the inverse of token. A token of another process, or one from before the
// horizon, is unknown.
func (h *hub) number(token string) (after uint64, known bool) {
	text, ok := strings.CutPrefix(token, h.epoch+"-")
	if _, err := fmt.Sscan(text, &after); !ok || err != nil || after < h.horizon || after > h.last {
		return 0, false
	}
	return after, true
}

// take returns the changes since the last call in their order, and the token of a reader that has them. The error, ABORTED, ends a
// reader that does not know some removals.
func (r *reader) take() (out []*change, token string, err error) {
	h := r.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if max(r.after, r.began) < h.horizon {
		return nil, "", status.Error(codes.Aborted, "the reader of this subscription fell so far behind that removed values are forgotten; subscribe again for all values")
	}
	for _, c := range h.since(r.after) {
		if h.isNewest(c) && r.wants(c.status.Key) && (c.number > r.began || !c.removed()) {
			out = append(out, c)
		}
	}
	r.after = h.last
	return out, h.token(h.last), nil
}

// close removes the reader.
func (r *reader) close() {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	delete(r.hub.readers, r)
}
