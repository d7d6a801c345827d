package hostnames

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// heard collects what is announced and not known yet, by the last part of the key.
type heard struct {
	known map[string]bool // as the scheduler has it
	news  []string
	named []string // names with the links that have them
}

func (h *heard) observe(seen ...scheduler.Observed) {
	for _, o := range seen {
		sign := "+"
		if o.Value == nil {
			sign = "-"
		}
		if h.known[o.Key] != (o.Value != nil) {
			h.known[o.Key] = o.Value != nil
			h.news = append(h.news, sign+strings.TrimPrefix(o.Key, "linux/interface/host-name/"))
		}
	}
}

func (h *heard) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(h.news, want) {
		t.Errorf("heard %q, want %q", h.news, want)
	}
	h.news = nil
}

func newNames(h *heard) *Names {
	h.known = map[string]bool{}
	n := New(netns.New(netns.Options{}), slog.New(slog.DiscardHandler), h.observe)
	n.OnNamed(func(name string, link int) { h.named = append(h.named, fmt.Sprint(name, " ", link)) })
	n.links, n.addrs = map[int]kernel.Link{}, map[int]map[netip.Prefix]bool{}
	return n
}

func TestHostNamesFollowEvents(t *testing.T) {
	var h heard
	n := newNames(&h)
	now := time.Unix(0, 0)
	tell := func(gone bool, what any) { n.Apply([]kernel.Event{{Gone: gone, What: what}}, now) }
	later := func(d time.Duration) { now = now.Add(d); n.Due(now) }
	link := func(name string, up bool, master int) kernel.Link {
		return kernel.Link{Index: 2, Name: name, Up: up, Master: master}
	}
	addr := kernel.Addr{Link: 2, Prefix: netip.MustParsePrefix("10.0.0.1/24")}

	tell(false, link("eth0", false, 0))
	tell(false, addr)
	h.expect(t) // nothing before it is up
	tell(false, link("eth0", true, 0))
	h.expect(t, "+eth0", "+eth0/address/10.0.0.1/24")

	tell(false, link("eth0", false, 0))
	later(drift.Debounce / 2)
	h.expect(t) // it may bounce
	tell(false, link("eth1", false, 0))
	tell(false, link("eth1", true, 0))
	h.expect(t, "+eth1", "+eth1/address/10.0.0.1/24")
	later(drift.Debounce / 2)
	h.expect(t, "-eth0", "-eth0/address/10.0.0.1/24")

	tell(false, kernel.Link{Index: 9, Name: "blue", Kind: "vrf", Up: true})
	tell(false, link("eth1", true, 9))
	h.expect(t, "+blue", "+eth1/vrf-host-name/blue")
	tell(false, kernel.Link{Index: 9, Name: "green", Kind: "vrf", Up: true})
	later(drift.Debounce)
	slices.Sort(h.news)
	h.expect(t, "+eth1/vrf-host-name/green", "+green", "-blue", "-eth1/vrf-host-name/blue")

	tell(true, addr)
	later(drift.Debounce)
	h.expect(t, "-eth1/address/10.0.0.1/24")
	tell(true, link("eth1", false, 9))
	h.expect(t, "-eth1", "-eth1/vrf-host-name/green") // gone is gone, at once
	if next := n.Due(now); !next.IsZero() {
		t.Errorf("still waits for %v", next)
	}
}

// Another link may have the name before it is withdrawn, or afterwards: the scheduler may miss the withdrawal.
func TestHostNameTakenOver(t *testing.T) {
	for name, tt := range map[string]struct {
		others []kernel.Event // after eth0 was up with index 2
		want   []string
	}{
		"renamed":            {[]kernel.Event{{What: kernel.Link{Index: 2, Name: "old", Up: true}}}, []string{"+eth0", "+old"}},
		"deleted":            {[]kernel.Event{{Gone: true, What: kernel.Link{Index: 2, Name: "eth0"}}}, []string{"+eth0", "-eth0", "+eth0"}},
		"deleted while down": {[]kernel.Event{{What: kernel.Link{Index: 2, Name: "eth0"}}, {Gone: true, What: kernel.Link{Index: 2, Name: "eth0"}}}, []string{"+eth0", "-eth0", "+eth0"}},
	} {
		for _, late := range []bool{false, true} {
			var h heard
			n := newNames(&h)
			now := time.Unix(0, 0)
			n.Apply([]kernel.Event{{What: kernel.Link{Index: 2, Name: "eth0", Up: true}}}, now)
			n.Apply(tt.others, now)
			want := tt.want
			if late {
				n.Due(now.Add(drift.Debounce))
				if name == "renamed" {
					want = []string{"+eth0", "+old", "-eth0", "+eth0"}
				}
			}
			n.Apply([]kernel.Event{{What: kernel.Link{Index: 3, Name: "eth0", Up: true}}}, now)
			n.Due(now.Add(drift.Debounce))
			h.expect(t, want...)
			if !slices.Contains(h.named, "eth0 3") {
				t.Errorf("%s, late %t: told of %q, want eth0 3 too", name, late, h.named)
			}
		}
	}
}

// The scheduler reads what stands while a link is down for a moment.
func TestHostNameReadWhileItBounces(t *testing.T) {
	var h heard
	n := newNames(&h)
	now := time.Unix(0, 0)
	tell := func(up bool) {
		n.Apply([]kernel.Event{{What: kernel.Link{Index: 2, Name: "eth0", Up: up}}}, now)
	}
	tell(true)
	h.expect(t, "+eth0")
	tell(false)
	clear(h.known) // Retrieve shows nothing
	now = now.Add(drift.Debounce / 2)
	tell(true)
	n.Due(now.Add(drift.Debounce))
	h.expect(t, "+eth0")
}

func TestHostNamesReadTheKernel(t *testing.T) {
	testkit.Netns(t)
	var h heard
	n := newNames(&h)
	n.Reload(time.Unix(0, 0))
	slices.Sort(h.news)
	want := []string{"+lo", "+lo/address/127.0.0.1/8", "+lo/address/::1/128"}
	h.expect(t, want...)
	var retrieved []string
	for f, err := range n.retrieve(t.Context(), nil) {
		if err != nil || !f.Foreign {
			t.Fatalf("%+v, %v", f, err)
		}
		retrieved = append(retrieved, fmt.Sprint("+", strings.TrimPrefix(f.Key, "linux/interface/host-name/")))
	}
	slices.Sort(retrieved)
	if !slices.Equal(retrieved, want) {
		t.Errorf("retrieved %q, want %q", retrieved, want)
	}
}
