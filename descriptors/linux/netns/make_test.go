package netns_test

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
	"github.com/keyplane/keyplane/scheduler"
)

// enter enters a namespace, as a verb does.
func enter(t *testing.T, s *netns.Set, name string) error {
	t.Helper()
	space, err := s.Enter(nsid(name))
	if err == nil {
		space.Close()
	}
	return err
}

// exists reports whether something has a name.
func exists(name string) bool {
	_, err := os.Stat("/run/netns/" + name)
	return err == nil
}

// Only what the agent made, and what is empty, is removed; also after a restart, which keeps the notes.
func TestTidy(t *testing.T) {
	testkit.Netns(t, "foreign")
	known := testkit.Memory{}
	set := netns.New(netns.Options{Known: known})
	for _, name := range []string{"empty", "used", "full"} {
		if err := enter(t, set, name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = scratch.DelNetns(name) })
	}
	err := errors.Join(enter(t, set, "foreign"), scratch.InNetns("full", func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "theirs"}, PeerName: "too"})
	}))
	if err != nil {
		t.Fatal(err)
	}
	again := startHouse(t, netns.Options{Known: known})
	again.want("a", "used")
	again.set.RemoveAll(t.Context())
	for name, stays := range map[string]bool{"empty": false, "used": true, "full": true, "foreign": true} {
		if exists(name) != stays {
			t.Errorf("%s exists: %v, want %v", name, !stays, stays)
		}
	}
	// What others use belongs to them from then on.
	if err := scratch.InNetns("full", func() error {
		l, err := netlink.LinkByName("theirs")
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	}); err != nil {
		t.Fatal(err)
	}
	again.unwant("a")
	again.set.RemoveAll(t.Context())
	if exists("used") || !exists("full") {
		t.Errorf("used exists: %v, full exists: %v; want false and true", exists("used"), exists("full"))
	}
}

// busy is this host with a process in each namespace, until it ends.
type busy struct {
	kernel.This
	ended *atomic.Bool
}

func (b busy) Used(asked func(kernel.ID) bool) map[kernel.ID]string {
	id, err := b.Stat("/run/netns/red")
	if err != nil || !asked(id) || b.ended.Load() {
		return nil
	}
	return map[kernel.ID]string{id: "4711"}
}

// A process that passes by only delays the removal of a namespace.
func TestTidyBesideAProcess(t *testing.T) {
	host := busy{ended: &atomic.Bool{}}
	h := startHouse(t, netns.Options{Host: host})
	h.want("a", "red")
	h.awaitState(keyOf("a"), scheduler.Configured)
	h.unwant("a")
	h.set.RemoveAll(t.Context())
	if !exists("red") {
		t.Error("it was removed below the process")
	}
	host.ended.Store(true)
	h.set.RemoveAll(t.Context())
	if exists("red") {
		t.Error("it stays after the process has ended")
	}
}

// A new namespace with the name of one that the agent made is not the agent's.
func TestTidyOfAReplacedNamespace(t *testing.T) {
	h := startHouse(t, netns.Options{})
	h.want("a", "red")
	h.awaitState(keyOf("a"), scheduler.Configured)
	open(t, h.set, nsid("red")) // no other namespace has its number while it is open
	if err := errors.Join(scratch.DelNetns("red"), scratch.AddNetns("red")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = scratch.DelNetns("red") })
	h.unwant("a")
	h.set.RemoveAll(t.Context())
	if !exists("red") {
		t.Error("a namespace of another program was removed")
	}
}

// killed is this host, on which the process ends between the file of a name and its namespace.
type killed struct{ kernel.This }

func (killed) Make(path string) (kernel.ID, error) {
	if err := os.WriteFile(path, nil, 0); err != nil {
		return kernel.ID{}, err
	}
	runtime.Goexit()
	panic("unreachable")
}

// A kill while a namespace is made is made up for by the next run: its value needs it, or it leaves nothing.
func TestKilledWhileMaking(t *testing.T) {
	testkit.Netns(t, "foreign") // so the folder of names stays a plain one, which other tests remove
	for _, needed := range []bool{true, false} {
		known := testkit.Memory{}
		var g sync.WaitGroup
		g.Go(func() { _, _ = netns.New(netns.Options{Host: killed{}, Known: known}).Enter(nsid("red")) })
		g.Wait()
		if len(known) != 1 || !exists("red") {
			t.Fatalf("it was killed with the notes %v", known)
		}
		h := startHouse(t, netns.Options{Known: known})
		if needed {
			h.want("a", "red")
			h.awaitState(keyOf("a"), scheduler.Configured)
			h.unwant("a")
		}
		h.set.Complete()
		h.await("nothing is left", func() bool { return !exists("red") })
		h.end()
	}
}

// A value that names the file of a namespace waits for it, also while another value needs the name.
func TestFileIsWaitedFor(t *testing.T) {
	testkit.Netns(t)
	set := netns.New(netns.Options{})
	if _, err := set.Enter(ref(namespace.NetNamespace_FD, "/run/netns/red")); !errors.Is(err, netns.ErrNotFound) || exists("red") {
		t.Errorf("it exists: %v; %v", exists("red"), err)
	}
}

// denying is this host, without the right to make namespaces.
type denying struct {
	kernel.This
	err error
}

func (d denying) Make(path string) (kernel.ID, error) {
	return kernel.ID{}, &os.PathError{Op: "open", Path: path, Err: d.err}
}

// A missing right is named, and nothing is noted as made.
func TestNoRightToMake(t *testing.T) {
	testkit.Netns(t)
	for _, denied := range []error{unix.EPERM, unix.EACCES, unix.EROFS, kernel.ErrHidden} {
		known := testkit.Memory{}
		err := enter(t, netns.New(netns.Options{Host: denying{err: denied}, Known: known}), "red")
		if !errors.Is(err, denied) || !strings.Contains(err.Error(), "no right to make namespace red") || !strings.Contains(err.Error(), "CAP_SYS_ADMIN") {
			t.Errorf("%v", err)
		}
		if len(known) > 0 {
			t.Errorf("after %v it knows %v", denied, known)
		}
	}
	wait := netns.New(netns.Options{Wait: true})
	if err := enter(t, wait, "red"); !errors.Is(err, netns.ErrNotFound) || exists("red") {
		t.Errorf("with the setting: %v", err)
	}
}
