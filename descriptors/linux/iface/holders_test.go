package iface

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// An EXISTING value follows its name in the agent's own namespace, for as long as it has a link.
func TestFollowedNames(t *testing.T) {
	var h holders
	expect := func(when string, link int, lost bool) {
		t.Helper()
		if h.haveLost("eth0", link) != lost {
			t.Errorf("%s, eth0 is link %d: lost %t, want %t", when, link, !lost, lost)
		}
	}
	v := &interfaces.Interface{Name: "uplink", Type: interfaces.Interface_EXISTING, HostIfName: "eth0"}
	expect("before", 6, false)
	h.take(linkID{index: 5}, v)
	expect("taken", 5, false)
	expect("taken", 6, true)
	h.drop(linkID{index: 5}, "uplink")
	expect("dropped", 6, false)

	found := func(own bool, link int) []observed {
		return []observed{{place: &place{Place: &netns.Place{Space: &netns.Space{}, Own: own}}, link: kernel.Link{Index: link}, value: v}}
	}
	if !h.replace(found(true, 5)) || h.replace(found(true, 5)) || !h.replace(found(true, 7)) {
		t.Error("a read-back is news only if it has found another link")
	}
	expect("read back", 7, false)
	expect("read back", 5, true)
	h.replace(found(false, 7)) // what is left of an undeclared value
	expect("in another namespace", 5, false)
}
