package iface

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
)

func veth(name, peer string, change ...func(*value)) *value {
	v := &value{
		Name: name, Type: interfaces.Interface_VETH, Enabled: true,
		Link: &interfaces.Interface_Veth{Veth: &interfaces.VethLink{PeerIfName: peer}},
	}
	for _, f := range change {
		f(v)
	}
	return v
}

func in(ns *namespace.NetNamespace) func(*value) { return func(v *value) { v.Namespace = ns } }

// Each setting of an end changes in place, and reads back as it was set.
func TestLifeOfAVETH(t *testing.T) {
	_, b := realHandler(t, "red")
	peer := veth("a-peer", "a")
	b.Create(t, peer)
	v := veth("a", "a-peer", in(red()))
	b.Create(t, v)
	b.Create(t, v)
	b.Expect(t, v, peer)
	changes := []struct {
		name    string
		change  func(*value)
		inPlace bool
	}{
		{"MTU", func(v *value) { v.Mtu = 9000 }, true},
		{"no MTU", func(v *value) { v.Mtu = 0 }, true},
		{"MAC", func(v *value) { v.PhysAddress = "02:FE:00:00:00:01" }, true},
		{"any MAC", func(v *value) { v.PhysAddress = "" }, true},
		{"host name", func(v *value) { v.HostIfName = "other" }, true},
		{"down", func(v *value) { v.Enabled = false }, true},
		{"host name while down", func(v *value) { v.HostIfName = "again" }, true},
		{"up", func(v *value) { v.Enabled = true }, true},
		{"checksums", func(v *value) {
			v.GetVeth().RxChecksumOffloading = interfaces.VethLink_CHKSM_OFFLOAD_DISABLED
			v.GetVeth().TxChecksumOffloading = interfaces.VethLink_CHKSM_OFFLOAD_DISABLED
		}, true},
		{"default checksums", func(v *value) {
			v.Link = veth("a", "a-peer").Link
		}, true},
		{"own namespace", func(v *value) { v.Namespace = nil }, false},
		{"red namespace", func(v *value) { v.Namespace = red() }, false},
		{"link only", func(v *value) { v.LinkOnly = true }, false},
	}
	for _, c := range changes {
		next := clone(v)
		c.change(next)
		if inPlace := b.Change(t, v, next); inPlace != c.inPlace {
			t.Errorf("%s: changed in place: %v, want %v", c.name, inPlace, c.inPlace)
		}
		b.Expect(t, next, peer)
		if t.Failed() {
			t.Fatalf("after the change of: %s", c.name)
		}
		v = next
	}
	b.Delete(t, v)
	b.Expect(t, peer)
	b.Delete(t, peer)
	b.Expect(t)
}

// Whichever end comes or goes first, and wherever it is.
func TestEndsComeAndGoInAnyOrder(t *testing.T) {
	_, b := realHandler(t, "red")
	a, z := veth("a", "z", in(red())), veth("z", "a", in(red()))
	for range 2 {
		b.Create(t, a)
		b.Expect(t, a)
		b.Create(t, z)
		b.Expect(t, a, z)
		b.Delete(t, a)
		b.Expect(t, z)
		b.Create(t, a)
		b.Expect(t, a, z)
		b.Delete(t, z)
		b.Delete(t, a)
		b.Expect(t)
		a, z = z, a
	}
}

// The verbs of both ends, and of other pairs, run at once.
func TestPairsAtOnce(t *testing.T) {
	h, b := realHandler(t, "red")
	var values []*value
	for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		values = append(values, veth("a"+n, "z"+n, in(red())), veth("z"+n, "a"+n))
	}
	for range 5 {
		metas := make([]Meta, len(values))
		each(values, func(i int, v *value) {
			var err error
			if metas[i], err = h.create(t.Context(), keyOf(v.Name), v); err != nil {
				t.Errorf("creating %s: %v", v.Name, err)
			}
		})
		b.Expect(t, values...)
		each(values, func(i int, v *value) {
			if err := h.delete(t.Context(), keyOf(v.Name), v, metas[i]); err != nil {
				t.Errorf("deleting %s: %v", v.Name, err)
			}
		})
		b.Expect(t)
	}
}

func each(values []*value, f func(int, *value)) {
	var wg sync.WaitGroup
	for i, v := range values {
		wg.Go(func() { f(i, v) })
	}
	wg.Wait()
}

// What is left when the agent, or somebody else, stopped half-way.
func TestLeftovers(t *testing.T) {
	h, b := realHandler(t, "red")
	own, err := h.Spaces.Own()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	a, z := veth("a", "z", in(red())), veth("z", "a")

	t.Run("a pair without marks", func(t *testing.T) {
		if err := own.AddVETH(kernel.Link{Name: tempName("a")}, tempName("z"), own.Kernel); err != nil {
			t.Fatal(err)
		}
		b.Create(t, a)
		b.Create(t, z)
		b.Expect(t, a, z)
	})
	t.Run("an end that was moved, and not renamed", func(t *testing.T) {
		space, _ := h.Spaces.Open(red())
		defer space.Close()
		l, err := space.LinkByName("a")
		if err := errors.Join(err, space.SetUp(l.Index, false), space.SetName(l.Index, tempName("a"))); err != nil {
			t.Fatal(err)
		}
		b.Create(t, a)
		b.Expect(t, a, z)
	})
	t.Run("an end that somebody moved away", func(t *testing.T) {
		l, err := own.LinkByName("z")
		space, _ := h.Spaces.Open(red())
		defer space.Close()
		if err := errors.Join(err, own.SetAlias(l.Index, "gone"), own.SetUp(l.Index, false), own.SetName(l.Index, "gone")); err != nil {
			t.Fatal(err)
		}
		b.Create(t, z) // removes the end that is left, and with it the pair
		b.Create(t, a)
		b.Expect(t, a, z)
	})
	t.Run("a pair that nobody wants", func(t *testing.T) {
		b.Delete(t, a)
		l, err := own.LinkByName("z")
		if err := errors.Join(err, own.SetUp(l.Index, false), own.SetName(l.Index, tempName("z"))); err != nil {
			t.Fatal(err)
		}
		removeFound(t, h, b)
		b.Expect(t)
	})
	t.Run("an end without the other", func(t *testing.T) {
		if err := own.AddVETH(kernel.Link{Name: "x"}, "y", own.Kernel); err != nil {
			t.Fatal(err)
		}
		l, _ := own.LinkByName("x")
		if err := own.SetAlias(l.Index, h.aliasOf(a, "")); err != nil {
			t.Fatal(err)
		}
		if found := removeFound(t, h, b); !slices.Equal(found, []string{"a" + missingPeer}) {
			t.Errorf("found %v", found)
		}
		b.Expect(t)
	})
	t.Run("two of one name", func(t *testing.T) {
		b.Create(t, a)
		b.Create(t, z)
		if err := own.AddVETH(kernel.Link{Name: "x"}, "y", own.Kernel); err != nil {
			t.Fatal(err)
		}
		l, _ := own.LinkByName("x")
		if err := own.SetAlias(l.Index, h.aliasOf(z, "")); err != nil {
			t.Fatal(err)
		}
		found := b.Retrieve(t, a, z)
		f, ok := found[keyOf("z"+duplicate+"0")]
		if !ok {
			t.Fatalf("found %v", found)
		}
		if err := h.delete(t.Context(), "", f.Value, f.Meta); err != nil {
			t.Fatal(err)
		}
		b.Expect(t, a, z)
		b.Delete(t, a)
		b.Delete(t, z)
	})
}

// removeFound deletes all that Retrieve finds, as the scheduler does with what
// nobody wants, and returns its names.
func removeFound(t *testing.T, h *handler, b *bench) (names []string) {
	t.Helper()
	for key, f := range b.Retrieve(t) {
		names = append(names, f.Value.GetName())
		if err := h.delete(t.Context(), key, f.Value, f.Meta); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// A name may have slashes in it; the alias still tells who is who.
func TestNamesWithSlashes(t *testing.T) {
	_, b := realHandler(t)
	a := veth("pod/a", "pod/z", func(v *value) { v.HostIfName = "a" })
	z := veth("pod/z", "pod/a", func(v *value) { v.HostIfName = "z" })
	b.Create(t, a)
	b.Create(t, z)
	b.Expect(t, a, z)
	if found := b.Retrieve(t); len(found) != 2 {
		t.Errorf("found, when nothing is known of them: %v", found)
	} else {
		for _, want := range []*value{a, z} {
			if _, ok := found[keyOf(want.Name)]; !ok {
				t.Errorf("%s is not among %v", want.Name, found)
			}
		}
	}
	b.Delete(t, a)
	b.Delete(t, z)
}
