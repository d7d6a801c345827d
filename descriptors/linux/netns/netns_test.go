package netns_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

func ref(kind namespace.NetNamespace_ReferenceType, reference string) *namespace.NetNamespace {
	return &namespace.NetNamespace{Type: kind, Reference: reference}
}

func nsid(name string) *namespace.NetNamespace { return ref(namespace.NetNamespace_NSID, name) }

func open(t *testing.T, s *netns.Set, ns *namespace.NetNamespace) *netns.Space {
	t.Helper()
	space, err := s.Open(ns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(space.Close)
	return space
}

func TestEachWayToReferLeadsToTheSameNamespace(t *testing.T) {
	testkit.Netns(t, "red")
	set := netns.New(netns.Options{})
	red := open(t, set, nsid("red"))
	var inside *exec.Cmd
	err := scratch.InNetns("red", func() error {
		inside = exec.Command("cat")
		if _, err := inside.StdinPipe(); err != nil {
			return err
		}
		return inside.Start()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inside.Process.Kill(); _ = inside.Wait() }()
	pid := fmt.Sprint(inside.Process.Pid)
	for _, ns := range []*namespace.NetNamespace{
		ref(namespace.NetNamespace_PID, pid),
		ref(namespace.NetNamespace_FD, "/proc/"+pid+"/ns/net"),
		ref(namespace.NetNamespace_FD, "/run/netns/red"),
	} {
		if space := open(t, set, ns); space != red {
			t.Errorf("%s is %v, not %v", netns.Text(ns), space.ID, red.ID)
		}
	}
	own := open(t, set, nil)
	if own.ID == red.ID || own != open(t, set, ref(namespace.NetNamespace_UNDEFINED, "")) {
		t.Errorf("own namespace %v, red %v", own.ID, red.ID)
	}
	if again, ok := set.ByID(red.ID); !ok || again != red {
		t.Error("an open namespace is not found by its id")
	} else {
		again.Close()
	}
}

// Places are opened once each, whatever the number of references, and the reference of a value
// is the desired one.
func TestPlaces(t *testing.T) {
	testkit.Netns(t, "red", "blue")
	set := netns.New(netns.Options{})
	byFile := ref(namespace.NetNamespace_FD, "/run/netns/red")
	places, err := set.Places([]*namespace.NetNamespace{byFile, nsid("red"), nsid("gone"), nil, byFile})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(places.Close)
	// Own, then those of values, then the others that have names.
	var got []string
	for _, p := range places {
		got = append(got, fmt.Sprint(netns.Text(p.Ref(nil)), " own=", p.Own))
	}
	want := []string{"the agent's own namespace own=true", "namespace at /run/netns/red own=false", "namespace blue own=false"}
	if !slices.Equal(got, want) {
		t.Fatalf("the places are %q, want %q", got, want)
	}
	red := places[1]
	for ref, reached := range map[*namespace.NetNamespace]bool{byFile: true, nsid("red"): true, nsid("blue"): false, nil: false} {
		if red.Reached(ref) != reached {
			t.Errorf("%s leads to red: want %v", netns.Text(ref), reached)
		}
		if got := red.Ref(ref); reached && got != ref || !reached && got != byFile {
			t.Errorf("for %s the reference is %s", netns.Text(ref), netns.Text(got))
		}
	}
}

// A desired reference that cannot lead to a namespace, or that the agent has no right to open,
// does not keep the other namespaces from being read. Other errors do.
func TestPlacesLeaveOutBadReferences(t *testing.T) {
	testkit.Netns(t, "red")
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	loop := plain + "-loop"
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	hidden := ref(namespace.NetNamespace_PID, "1")
	host := &refusing{path: "/proc/1/ns/net", err: unix.EACCES}
	var log strings.Builder
	set := netns.New(netns.Options{Host: host, Log: slog.New(slog.NewTextHandler(&log, nil))})
	desired := []*namespace.NetNamespace{
		ref(namespace.NetNamespace_FD, plain), ref(namespace.NetNamespace_FD, plain+"/below"), ref(namespace.NetNamespace_FD, loop),
		nsid(strings.Repeat("x", 256)), hidden,
	}
	for _, ns := range desired[:4] {
		if _, err := set.Open(ns); !errors.Is(err, netns.ErrNotFound) {
			t.Errorf("%.40s: %v", netns.Text(ns), err)
		}
	}
	for _, denied := range []error{unix.EACCES, unix.EPERM} {
		host.err = denied
		places, err := set.Places(desired)
		if err != nil {
			t.Fatal(err)
		}
		if len(places) != 2 || places[1].Ref(nil).GetReference() != "red" {
			t.Errorf("%d places, want our own and red", len(places))
		}
		places.Close()
	}
	if n := strings.Count(log.String(), "process 1"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, log.String())
	}
	host.err = unix.EMFILE
	if _, err := set.Places(desired); !errors.Is(err, unix.EMFILE) {
		t.Errorf("without file descriptors: %v", err)
	}
	host.path, host.err = "/run/netns/red", unix.EACCES
	if _, err := set.Places(nil); !errors.Is(err, unix.EACCES) {
		t.Errorf("without the right to open a name: %v", err)
	}
}

// refusing is this host, with an error for one path.
type refusing struct {
	kernel.This
	path string
	err  error
}

func (r *refusing) Stat(path string) (kernel.ID, error) {
	if path == r.path {
		return kernel.ID{}, &os.PathError{Op: "stat", Path: path, Err: r.err}
	}
	return r.This.Stat(path)
}

func TestNotThere(t *testing.T) {
	testkit.Netns(t)
	set := netns.New(netns.Options{})
	tests := []struct {
		ns   *namespace.NetNamespace
		want string
	}{
		{nsid("red"), "namespace red: network namespace does not exist: create it with: ip netns add red"},
		{nsid("red;reboot"), "namespace red;reboot: network namespace does not exist: create it with: ip netns add 'red;reboot'"},
		{nsid("$(reboot)'"), `namespace $(reboot)': network namespace does not exist: create it with: ip netns add '$(reboot)'\'''`},
		{ref(namespace.NetNamespace_PID, "2147483647"), "namespace of process 2147483647: network namespace does not exist"},
		{ref(namespace.NetNamespace_FD, "/no/where"), "namespace at /no/where: network namespace does not exist"},
		{ref(namespace.NetNamespace_MICROSERVICE, "m1"), "namespace of microservice m1: network namespace does not exist: no running container has that label"},
	}
	for _, tt := range tests {
		_, err := set.Open(tt.ns)
		if !errors.Is(err, netns.ErrNotFound) || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
	only := netns.New(netns.Options{Disabled: true})
	open(t, only, nil)
	if _, err := only.Open(nsid("red")); !errors.Is(err, netns.ErrDisabled) {
		t.Errorf("with namespaces disabled: %v", err)
	}
}

// A reference of type FD may name any file of the host. None of them is opened unless it is
// a network namespace: the open of a FIFO would block for ever.
func TestFilesThatAreNoNamespaceAreNotOpened(t *testing.T) {
	testkit.Netns(t)
	set := netns.New(netns.Options{})
	dir := t.TempDir()
	fifo, link, plain := filepath.Join(dir, "fifo"), filepath.Join(dir, "link"), filepath.Join(dir, "plain")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.Symlink(fifo, link), os.WriteFile(plain, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	defer unix.Open(fifo, unix.O_RDWR|unix.O_NONBLOCK, 0) // releases a reader that blocks
	for _, path := range []string{fifo, link, plain, dir, "/dev/null", "/proc/self/ns/uts"} {
		refused := make(chan error, 1)
		go func() {
			_, err := set.Open(ref(namespace.NetNamespace_FD, path))
			refused <- err
		}()
		select {
		case err := <-refused:
			if want := "namespace at " + path + ": network namespace does not exist: " + path + ": not a network namespace"; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		case <-time.After(testkit.Patience):
			t.Fatalf("opening %s blocks", path)
		}
	}
}

// A name given to a new namespace leads there; the old one works as long as
// somebody has it, and is gone after that.
func TestReplaced(t *testing.T) {
	testkit.Netns(t, "red")
	set := netns.New(netns.Options{})
	before := open(t, set, nsid("red"))
	if err := errors.Join(scratch.DelNetns("red"), scratch.AddNetns("red")); err != nil {
		t.Fatal(err)
	}
	after := open(t, set, nsid("red"))
	if before.ID == after.ID {
		t.Fatal("still the old namespace")
	}
	if _, err := before.Links(); err != nil {
		t.Errorf("the old one: %v", err)
	}
	set.Drop(before.ID)
	if _, ok := set.ByID(before.ID); ok {
		t.Error("a dropped namespace can still be opened")
	}
	if _, err := before.Links(); err != nil {
		t.Errorf("the old one, dropped while it is in use: %v", err)
	}
}

// host counts what is open.
type host struct {
	kernel.This
	opened, closed int
}

type counted struct {
	kernel.Kernel
	h *host
}

func (h *host) Open(path string) (kernel.Kernel, kernel.ID, error) {
	k, id, err := h.This.Open(path)
	h.opened++
	return counted{k, h}, id, err
}

func (c counted) Close() error { c.h.closed++; return c.Kernel.Close() }

func TestWhatNobodyUsesIsClosed(t *testing.T) {
	testkit.Netns(t, "a", "b", "c", "d")
	h := &host{}
	set := netns.New(netns.Options{Host: h, Idle: 2})
	use := func(name string) {
		space, err := set.Open(nsid(name))
		if err != nil {
			t.Fatal(err)
		}
		space.Close()
	}
	for _, name := range []string{"a", "b", "a", "c", "a", "d"} {
		use(name)
	}
	if h.opened != 4 || h.closed != 2 {
		t.Errorf("opened %d, closed %d, want 4 and 2 (b and c)", h.opened, h.closed)
	}
	use("a")
	if h.opened != 4 {
		t.Error("what was used last was closed")
	}
}

func TestNamed(t *testing.T) {
	testkit.Netns(t, "blue", "red")
	refs, err := netns.New(netns.Options{}).Named()
	if err != nil || len(refs) != 2 || refs[0].GetReference() != "blue" || refs[1].GetReference() != "red" {
		t.Errorf("named %v, %v", refs, err)
	}
	if refs, err := netns.New(netns.Options{Dir: "/no/where"}).Named(); err != nil || len(refs) != 0 {
		t.Errorf("without folder %v, %v", refs, err)
	}
}

func TestWatch(t *testing.T) {
	testkit.Netns(t, "old")
	set := netns.New(netns.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	changes := make(chan netns.Change)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		set.Watch(ctx, func(c netns.Change) {
			select {
			case changes <- c:
			case <-ctx.Done():
			}
		})
	}()
	next := func() netns.Change {
		t.Helper()
		select {
		case c := <-changes:
			return c
		case <-ctx.Done():
			t.Fatal("no change in time")
			return netns.Change{}
		}
	}
	if c := next(); !slices.Equal(c.Appeared, []string{"old"}) || len(c.Gone) > 0 {
		t.Fatalf("at the start %+v", c)
	}
	testkit.Netns(t, "new")
	if c := next(); !slices.Equal(c.Appeared, []string{"new"}) {
		t.Fatalf("after ip netns add %+v", c)
	}
	id := open(t, set, nsid("new")).ID
	if err := scratch.DelNetns("new"); err != nil {
		t.Fatal(err)
	}
	if c := next(); !slices.Equal(c.Gone, []kernel.ID{id}) || !slices.Equal(c.Lost, []string{"new"}) || len(c.Appeared) > 0 {
		t.Fatalf("after ip netns del %+v, want new lost and %v gone", c, id)
	}
	set.Drop(id)
	cancel()
	<-ended
}

// A busyHost does something once while the names of namespaces are compared.
type busyHost struct {
	kernel.Host
	own  string // the path of the own namespace, which is compared last
	once sync.Once
	do   func()
}

func (h *busyHost) Stat(path string) (kernel.ID, error) {
	if path == h.own {
		h.once.Do(h.do)
	}
	return h.Host.Stat(path)
}

// A namespace gets its name after the names were read, and is opened at once: it has not lost its name.
func TestWatchWhileANameComes(t *testing.T) {
	own := filepath.Join(testkit.Netns(t, "own"), "own")
	host := &busyHost{Host: kernel.This{}, own: own}
	set := netns.New(netns.Options{Host: host, Own: own})
	host.do = func() {
		testkit.Netns(t, "new")
		open(t, set, nsid("new"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	seen := []string{}
	set.Watch(ctx, func(c netns.Change) {
		if seen = append(seen, c.Appeared...); len(c.Gone) > 0 {
			t.Errorf("%v has gone", c.Gone)
		}
		if slices.Contains(seen, "new") {
			cancel()
		}
	})
	if !slices.Equal(seen, []string{"own", "new"}) {
		t.Errorf("%q have appeared", seen)
	}
}

// The folder of names comes with the first name.
func TestWatchBeforeTheFolderIsThere(t *testing.T) {
	testkit.Netns(t)
	if err := os.Remove("/run/netns"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.MkdirAll("/run/netns", 0o755) }()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	appeared := make(chan []string, 8)
	go func() {
		netns.New(netns.Options{}).Watch(ctx, func(c netns.Change) { appeared <- c.Appeared })
	}()
	testkit.Netns(t, "first")
	select {
	case names := <-appeared:
		if !slices.Equal(names, []string{"first"}) {
			t.Errorf("appeared %v", names)
		}
	case <-ctx.Done():
		t.Error("the first name was not noticed")
	}
}

// A namespace of a process is not kept open: it ends with the process.
func TestNotKept(t *testing.T) {
	dir := testkit.Netns(t, "red")
	set := netns.New(netns.Options{Dir: "/no/where", Container: func(label string) string { return filepath.Join(dir, label) }})
	for _, ns := range []*namespace.NetNamespace{
		ref(namespace.NetNamespace_MICROSERVICE, "red"), ref(namespace.NetNamespace_FD, filepath.Join(dir, "red")),
	} {
		space, err := set.Open(ns)
		if err != nil {
			t.Fatal(err)
		}
		space.Close()
		if other, open := set.ByID(space.ID); open {
			other.Close()
			t.Errorf("%v is still open", ns)
		}
	}
	if _, err := set.Open(ref(namespace.NetNamespace_MICROSERVICE, "blue")); !errors.Is(err, netns.ErrNotFound) {
		t.Errorf("a container that does not run: %v", err)
	}
}

// Notations with one meaning are one reference, for comparisons and for claims.
func TestNotations(t *testing.T) {
	pid, fd := namespace.NetNamespace_PID, namespace.NetNamespace_FD
	for i, same := range [][]*namespace.NetNamespace{
		{nil, ref(namespace.NetNamespace_UNDEFINED, "")},
		{nsid("red"), ref(fd, "/var/run/netns/red"), ref(fd, "/var/run//netns/./red"), ref(fd, "/var/run/netns/blue/../red")},
		{ref(pid, "17"), ref(pid, "0017"), ref(fd, "/proc/17/ns/net"), ref(fd, "/proc/17/ns//net")},
		{ref(fd, "/proc/17/ns/mnt")},
		{ref(fd, "/proc/self/ns/net")},
		{ref(fd, "/netns/red"), ref(fd, "//netns/red")},
		{ref(namespace.NetNamespace_MICROSERVICE, "red")},
	} {
		for j, one := range same {
			if !netns.Equal(one, same[0]) || netns.Identity(one) != netns.Identity(same[0]) {
				t.Errorf("group %d: %v is %s, not %s", i, one, netns.Identity(one), netns.Identity(same[0]))
			}
			if j == 0 && i > 0 && netns.Equal(one, nsid("red")) != (i == 1) {
				t.Errorf("group %d: %v", i, one)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		ns   *namespace.NetNamespace
		want string
	}{
		{nil, ""},
		{nsid("red"), ""},
		{ref(namespace.NetNamespace_PID, "17"), ""},
		{ref(namespace.NetNamespace_FD, "/proc/17/ns/net"), ""},
		{ref(namespace.NetNamespace_MICROSERVICE, "m1"), ""},
		{nsid("a/b"), "namespace.reference"},
		{nsid(""), "namespace.reference"},
		{nsid(".."), "namespace.reference"},
		{ref(namespace.NetNamespace_PID, "init"), "namespace.reference"},
		{ref(namespace.NetNamespace_PID, "0"), "namespace.reference"},
		{ref(namespace.NetNamespace_FD, "red"), "namespace.reference"},
		{ref(namespace.NetNamespace_UNDEFINED, "red"), "namespace.type"},
		{ref(99, "red"), "namespace.type"},
		{ref(namespace.NetNamespace_FD, "/"+strings.Repeat("a/", 3000)), "namespace.reference"},
		{ref(namespace.NetNamespace_MICROSERVICE, strings.Repeat("m", 1<<20)), "namespace.reference"},
	}
	for _, tt := range tests {
		err := netns.Validate("namespace", tt.ns)
		if got := strings.Join(models.Fields(err), " "); got != tt.want {
			t.Errorf("%v: invalid are %q (%v), want %q", tt.ns, got, err, tt.want)
		}
	}
}

// The agent's own namespace stays its own while threads are in others: here all
// that there are, the first one too, wait in red for somebody to write what they
// read, and then to read what they write.
func TestOwnWhileThreadsAreElsewhere(t *testing.T) {
	testkit.Netns(t, "red")
	set := netns.New(netns.Options{})
	red, own := open(t, set, nsid("red")), open(t, set, nil)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	const threads = 50
	var writers sync.WaitGroup
	for range threads {
		writers.Go(func() {
			if err := red.Sysctl("../../.."+fifo, "."); err != nil {
				t.Error(err)
			}
		})
	}
	inRed := func() (n int) {
		tasks, _ := filepath.Glob("/proc/self/task/*/ns/net")
		for _, task := range tasks {
			if id, err := (kernel.This{}).Stat(task); err == nil && id == red.ID {
				n++
			}
		}
		return n
	}
	for inRed() < threads {
		runtime.Gosched()
	}
	if again := open(t, set, nil); again != own {
		t.Errorf("our own namespace is %v, red %v, was %v", again.ID, red.ID, own.ID)
	}
	empty, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err := errors.Join(err, empty.Close()); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	writers.Wait()
}

// Each name that passes validation is usable as written: the kernel has a namespace of that name, and it is opened.
func TestNamesAreUsable(t *testing.T) {
	for _, name := range []string{
		"red", " ", "a b", "a\nb", "-", "--", "...", ".a", "%", "%d", "all", "default", "é", "\xff", "*", "'", `\`, "\x01", "0", "1", "self", "net:[1]", strings.Repeat("x", 255), strings.Repeat("é", 127),
		strings.Repeat("x", 256), "a\x00b", "\x00", "a/b", "/", ".", "..", "",
	} {
		if netns.Validate("namespace", nsid(name)) != nil {
			continue
		}
		t.Run("", func(t *testing.T) {
			testkit.Netns(t, name)
			open(t, netns.New(netns.Options{}), nsid(name))
		})
	}
	for _, wrong := range []*namespace.NetNamespace{nsid(strings.Repeat("x", 256)), nsid("a\x00b"), ref(namespace.NetNamespace_FD, "/a\x00b")} {
		if netns.Validate("namespace", wrong) == nil {
			t.Errorf("%q is accepted, and no file can have that name", wrong.GetReference())
		}
	}
}
