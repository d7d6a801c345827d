package iface

import (
	"log/slog"
	"maps"
	"net/netip"
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/testkit"
)

// What is known about links outlives the agent, but not the boot, and not a link with another MAC address.
func TestMarksAreSaved(t *testing.T) {
	saved, log := testkit.Memory{}, slog.New(slog.DiscardHandler)
	id, p := linkID{kernel.ID{Dev: 4, Ino: 17}, 3}, netip.MustParsePrefix("fd00::1/64")
	m := newMarks(saved, log)
	m.put(id, "/vnf-agent/test/a=b/c", "02:00:00:00:00:01")
	m.putAddr(id, p, "if/1")
	again := newMarks(saved, log)
	if alias, known := again.of(id, "02:00:00:00:00:01"); !known || alias != "/vnf-agent/test/a=b/c" || again.madeFor(id, p) != "if/1" {
		t.Errorf("known after a restart: %q %v, %q", alias, known, again.madeFor(id, p))
	}
	if _, known := again.of(id, "02:00:00:00:00:02"); known {
		t.Error("another link is taken for ours")
	}
	for key, value := range maps.Clone(saved) {
		delete(saved, key)
		saved["another-boot"+key] = value
	}
	if m := newMarks(saved, log); len(m.links)+len(m.made)+len(saved) > 0 {
		t.Errorf("of another boot is known %v, %v, and saved %v", m.links, m.made, saved)
	}
}

// What somebody changes while a verb works is not taken for what is declared.
func TestDeclaredIsRecorded(t *testing.T) {
	h, _ := realHandler(t)
	v := veth("a", "z", in(red()))
	v.HostIfName, v.Enabled = "a0", true
	if e := h.entryOf("k", kernel.Link{Index: 3, Name: "other", MTU: 1300}, v); e.Name != "a0" || e.State != drift.Up || e.MTU != 1500 {
		t.Errorf("recorded is %+v", e)
	}
}

// An alias is put back at once, and after a pause when another program insists. That of another agent is left.
func TestAliasIsPutBack(t *testing.T) {
	h, b := realHandler(t, "red")
	v := veth("a", "z", in(red()))
	b.Create(t, v)
	defer b.Delete(t, v)
	space, err := h.Spaces.Open(red())
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	meta, _ := b.Get("a")
	overwrite := func(alias string) string {
		t.Helper()
		if err := space.SetAlias(meta.Index, alias); err != nil {
			t.Fatal(err)
		}
		h.remark(space.ID, meta.Index)
		l, err := space.LinkByIndex(meta.Index)
		if err != nil {
			t.Fatal(err)
		}
		return l.Alias
	}
	if got := overwrite("/vnf-agent/other/a"); got != "/vnf-agent/other/a" {
		t.Errorf("the mark of another agent is %q now", got)
	}
	ours := h.aliasOf(v, "")
	for range 4 {
		if got := overwrite("uplink"); got != ours {
			t.Fatalf("the alias is %q, want %q", got, ours)
		}
	}
	if got := overwrite("uplink"); got != "uplink" || !h.remarks.waits[linkID{space.ID, meta.Index}] {
		t.Errorf("the alias is %q at once, though another program insists", got)
	}
	b.Expect(t, v) // it is ours nevertheless, and a reading puts the alias back
	if l, err := space.LinkByIndex(meta.Index); err != nil || l.Alias != ours {
		t.Errorf("after a reading the alias is %q, %v", l.Alias, err)
	}
}

// The kernel gives the numbers of what is gone to others, which are not ours: those of a link, and those of a namespace.
func TestMarksGoWithTheirLinks(t *testing.T) {
	h, _ := realHandler(t)
	h.Watch.OnGone(h.marks.gone)
	red, blue := kernel.ID{Dev: 4, Ino: 1001}, kernel.ID{Dev: 4, Ino: 1002}
	p, mac := netip.MustParsePrefix("fd00::1/64"), "02:00:00:00:00:01"
	for _, ns := range []kernel.ID{red, blue} {
		for index := range 2 {
			h.marks.put(linkID{ns, 2 + index}, "alias", mac)
			h.marks.putAddr(linkID{ns, 2 + index}, p, "if")
		}
	}
	known := func(want map[linkID]bool) {
		t.Helper()
		for _, ns := range []kernel.ID{red, blue} {
			for index := range 2 {
				id := linkID{ns, 2 + index}
				_, known := h.marks.of(id, mac)
				if made := h.marks.madeFor(id, p) != ""; known != want[id] || made != want[id] {
					t.Errorf("link %v is known: %v, its address: %v; want %v", id, known, made, want[id])
				}
			}
		}
	}
	h.marks.gone(red, 3)
	known(map[linkID]bool{{red, 2}: true, {blue, 2}: true, {blue, 3}: true})
	h.Watch.NamespacesGone([]kernel.ID{red})
	known(map[linkID]bool{{blue, 2}: true, {blue, 3}: true})
	h.forgetSpaces() // nobody has opened blue
	known(nil)
}
