package iface

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
)

// opened opens a namespace until the end of the test; nil is the agent's own.
func opened(t *testing.T, h *handler, ref *namespace.NetNamespace) *netns.Space {
	t.Helper()
	space, err := h.Spaces.Open(ref)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(space.Close)
	return space
}

func blue() *namespace.NetNamespace {
	return &namespace.NetNamespace{Type: namespace.NetNamespace_NSID, Reference: "blue"}
}

// copyMark marks a link as whoever is root in its namespace can.
func copyMark(t *testing.T, where *netns.Space, name, alias string) kernel.Link {
	t.Helper()
	l, err := where.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := where.SetAlias(l.Index, alias); err != nil {
		t.Fatal(err)
	}
	return l
}

// The namespace blue is read before red. Its root gives a link of its own the mark of the link that the agent has in red.
func TestACopiedMarkIsNotTheLinkOfTheAgent(t *testing.T) {
	h, b := realHandler(t, "blue", "red")
	blues := opened(t, h, blue())
	a, z := veth("a", "z", in(red())), veth("z", "a")
	b.Create(t, a)
	b.Create(t, z)
	if err := blues.AddVETH(kernel.Link{Name: "x"}, "y", blues.Kernel); err != nil {
		t.Fatal(err)
	}
	copied := copyMark(t, blues, "x", h.aliasOf(a, ""))
	reader := veth("b", "c", in(blue()))
	found := b.Retrieve(t, reader, a, z)
	meta, _ := b.Get("a")
	if got := found[keyOf("a")].Meta; got.NS != meta.NS || got.Index != meta.Index {
		t.Errorf("a was found as %+v, want %+v", got, meta)
	}
	f := found[keyOf("a"+duplicate+"0")]
	if f.Meta.Index != copied.Index {
		t.Fatalf("found %v, without the copied mark", found)
	}
	if err := h.delete(t.Context(), "", f.Value, f.Meta); err != nil {
		t.Fatal(err)
	}
	b.Expect(t, a, z)
	b.Delete(t, a)
	b.Delete(t, z)
}

// What has a copied mark is not moved to the agent's own namespace, under a name that the mark says, nor to that of
// another value.
func TestACopiedMarkMovesNothing(t *testing.T) {
	for _, declared := range []bool{false, true} {
		t.Run(fmt.Sprintf("declared %v", declared), func(t *testing.T) {
			h, b := realHandler(t, "blue", "red")
			own, blues := opened(t, h, nil), opened(t, h, blue())
			tap := &value{
				Name: "tap1", Type: interfaces.Interface_TAP_TO_VPP, HostIfName: "tap-in-red", Namespace: red(),
				Link: &interfaces.Interface_Tap{Tap: &interfaces.TapLink{VppTapIfName: "vpp-tap"}},
			}
			addTAP(t, "evil")
			l, err := own.LinkByName("evil")
			if err := errors.Join(err, own.Move(l.Index, blues.Kernel)); err != nil {
				t.Fatal(err)
			}
			copyMark(t, blues, "evil", h.aliasOf(tap, "wan0"))
			if err := blues.AddVETH(kernel.Link{Name: "x"}, "y", blues.Kernel); err != nil {
				t.Fatal(err)
			}
			end, wanted := veth("a", "z", in(red())), []*value(nil)
			copyMark(t, blues, "x", h.aliasOf(end, ""))
			if declared {
				if _, err := h.create(t.Context(), keyOf("tap1"), tap); !errors.Is(err, unix.ENODEV) {
					t.Errorf("the TAP of another namespace: %v", err)
				}
				wanted = []*value{tap, end, veth("z", "a")}
			}
			for key, f := range b.Retrieve(t, wanted...) {
				if err := h.delete(t.Context(), key, f.Value, f.Meta); err != nil {
					t.Error(err)
				}
			}
			if l, err := blues.LinkByName("evil"); err != nil || l.Alias != unconfigured {
				t.Errorf("the TAP is %+v, %v", l, err)
			}
			if _, err := blues.LinkByName("x"); !errors.Is(err, unix.ENODEV) {
				t.Errorf("the end is still there: %v", err)
			}
			onlyLoopback(t, h)
			if links, err := opened(t, h, red()).Links(); err != nil || slices.ContainsFunc(links, func(l kernel.Link) bool { return !slices.Contains(ofKernel, l.Name) }) {
				t.Errorf("red has %+v, %v", links, err)
			}
		})
	}
}

// Root in a namespace gives a link alternative names: one that is free in the agent's own namespace, where others may wait for
// it, and one that a link has there. The link comes back without them.
func TestALinkBringsNoOtherNames(t *testing.T) {
	h, b := realHandler(t, "red")
	own := opened(t, h, nil)
	if err := own.AddVETH(kernel.Link{Name: "theirs"}, "theirs2", own.Kernel); err != nil {
		t.Fatal(err)
	}
	addTAP(t, defaultTAPHost("vpp-tap"))
	tap := &value{
		Name: "tap1", Type: interfaces.Interface_TAP_TO_VPP, HostIfName: "tap-in-red", Namespace: red(),
		Link: &interfaces.Interface_Tap{Tap: &interfaces.TapLink{VppTapIfName: "vpp-tap"}},
	}
	b.Create(t, tap)
	for _, name := range []string{"wan0", "theirs", defaultTAPHost("vpp-tap")} {
		if out, err := exec.Command("ip", "-n", "red", "link", "property", "add", "dev", "tap-in-red", "altname", name).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	b.Delete(t, tap)
	l, err := own.LinkByName(defaultTAPHost("vpp-tap"))
	if err != nil || len(l.Others) > 0 {
		t.Errorf("the TAP is %+v, %v", l, err)
	}
	theirs, absent := own.LinkByName("theirs")
	if err := errors.Join(absent, own.DelLink(l.Index), own.DelLink(theirs.Index)); err != nil {
		t.Error(err)
	}
}
