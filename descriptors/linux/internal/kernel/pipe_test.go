package kernel

import (
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/testkit"
)

// loopback opens a namespace of its own with lo up, and returns a function that makes
// routes through it.
func loopback(t *testing.T) (*real, func(i int) Route) {
	t.Helper()
	k, _, err := This{}.Open(testkit.Netns(t, "red") + "/red")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	lo, err := k.LinkByName("lo")
	if err := errors.Join(err, k.SetUp(lo.Index, true)); err != nil {
		t.Fatal(err)
	}
	return k.(*real), func(i int) Route {
		dst := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)
		return Route{Link: lo.Index, Dst: dst, Scope: unix.RT_SCOPE_LINK, Table: MainTable, Protocol: Protocol}
	}
}

// TestDatagramOfChanges: each change in a datagram gets its own result, also the last one, with
// which the answers end.
func TestDatagramOfChanges(t *testing.T) {
	k, route := loopback(t)
	add := func(i int) *change {
		return &change{message: routeMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, route(i))}
	}
	for _, numbers := range [][]int{{1}, {1, 2, 1, 3}, {4, 1}, {5, 4}, {6}} {
		var batch []*change
		for _, i := range numbers {
			batch = append(batch, add(i))
		}
		seen := map[Route]bool{}
		before, err := k.Routes(func(r Route) bool { return r.Protocol == Protocol })
		for _, r := range before {
			seen[r] = true
		}
		k.changes.exchange(batch)
		for n, i := range numbers {
			if exists := seen[route(i)]; err != nil || exists != errors.Is(batch[n].err, unix.EEXIST) || !exists && batch[n].err != nil {
				t.Errorf("%v: change %d, of route %d: %v (%v)", numbers, n, i, batch[n].err, err)
			}
			seen[route(i)] = true
		}
	}
}

// TestLostAnswers: if answers do not fit into the socket's buffer, the changes without an answer
// fail, the others have their results, and later changes are answered again.
func TestLostAnswers(t *testing.T) {
	k, route := loopback(t)
	if err := unix.SetsockoptInt(k.changes.socket, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		batch := make([]*change, maxBatch)
		for i := range batch {
			batch[i] = &change{message: routeMessage(unix.RTM_DELROUTE, 0, route(i))}
		}
		k.changes.exchange(batch)
		if err := batch[0].err; !errors.Is(err, unix.ESRCH) {
			t.Errorf("the first change, of a route that does not exist: %v", err)
		}
		if err := batch[maxBatch-1].err; !errors.Is(err, unix.ENOBUFS) {
			t.Errorf("the last change, whose answer is lost: %v", err)
		}
		if err := errors.Join(k.AddRoutes(route(1))[0], k.DelRoute(route(1))); err != nil {
			t.Errorf("changes afterwards: %v", err)
		}
	}
}

// TestFullDatagramIsAnswered: the buffer has room for the answers to a datagram of changes that
// all fail.
func TestFullDatagramIsAnswered(t *testing.T) {
	k, route := loopback(t)
	batch := make([]*change, maxBatch)
	for i := range batch {
		r := route(i)
		r.Gateway = netip.MustParseAddr("192.0.2.1") // the kernel's answer has a text
		batch[i] = &change{message: routeMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, r)}
	}
	k.changes.exchange(batch)
	for i, c := range batch {
		if !errors.Is(c.err, unix.EINVAL) && !errors.Is(c.err, unix.ENETUNREACH) {
			t.Fatalf("change %d: %v", i, c.err)
		}
	}
}
