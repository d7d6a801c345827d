package faults

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
	"github.com/keyplane/keyplane/internal/testkit"
)

// childFaults need an agent in another process: without an administrator's rights, or in a
// user namespace.
func childFaults() []Fault {
	return []Fault{
		{Name: "agent killed (SIGKILL) at random moments", Needs: stores.Children, Alone: agentKilled},
		{Name: "agent killed (SIGKILL) in a flood", Needs: stores.Children, Alone: killedInFlood},
		{Name: "right to read a file lost, and given back", Needs: stores.FilesOfPeople | stores.Children, Alone: rightsLost},
		{Name: "kernel gives no file watches (inotify limit)", Needs: stores.FilesOfPeople | stores.Children, Alone: noWatches},
	}
}

// agentKilled kills the agent at random moments while the store changes, during its start
// and later.
func agentKilled(r *Run) time.Duration {
	if r.Store.Lend != nil {
		r.Store.Lend()
	}
	c := r.spawn(false, nil)
	if r.Store.Lend != nil {
		r.Store.Write = c.write
	}
	c.await()
	for range r.Scale.Kills {
		c.killAmid(func() { r.churn(1) })
		c.restart()
	}
	r.heal()
	return c.awaitRecovery()
}

// killedInFlood kills the agent at random moments in a flood of puts and deletes. Its
// southbound does not show the owner of an item. The last items are deleted before the
// agent starts again, either with its store or without. No item may return to an older
// value or return after its deletion, and none may be left over; awaitRecovery checks that over
// all lives.
func killedInFlood(r *Run) time.Duration {
	if r.Store.Lend != nil {
		r.Store.Lend()
	}
	c := r.unborn(nil)
	c.life.State = r.TempDir()
	c.start()
	if r.Store.Lend != nil {
		r.Store.Write = c.write
	}
	c.await()
	fresh := r.Scale.Keys
	for i := range r.Scale.Kills {
		c.killAmid(func() {
			r.churn(1)
			r.Write(history.Change{Key: r.name(fresh), Text: r.text()})
			fresh++
		})
		c.kill()
		// Other stores have a writer of their own.
		if r.Store.Lend == nil { // otherwise only the agent can write
			r.Delete(r.names(fresh)[max(r.Scale.Keys, fresh-10):]...)
		}
		// Every other life begins without the store, from the saved state alone.
		if i%2 == 0 {
			c.start()
		} else {
			c.startAway()
			c.comeBack()
		}
		c.await()
	}
	r.heal()
	return c.awaitRecovery()
}

// killAmid repeats do, and kills the child at a random moment.
func (c *child) killAmid(do func()) {
	running, over := c.cmd.Process, make(chan struct{})
	moment := time.Duration(c.r.Rand.Int64N(int64(200 * time.Millisecond)))
	// A timer, so that the kill comes within do and not always between two writes.
	time.AfterFunc(moment, func() { _ = running.Kill(); close(over) })
	for alive := true; alive; {
		do()
		select {
		case <-over:
			alive = false
		default:
		}
	}
}

// startAway starts the child while its store is away, and waits until it has applied its
// saved state.
func (c *child) startAway() {
	c.r.Helper()
	if err := os.WriteFile(filepath.Join(c.life.State, awayName), nil, 0o600); err != nil {
		c.r.Fatal(err)
	}
	applied := filepath.Join(c.life.State, committedName)
	if err := os.Remove(applied); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.r.Fatal(err)
	}
	c.start()
	if err := c.r.tryUntil(func(context.Context) error { _, err := os.Stat(applied); return err }); err != nil {
		c.r.Fatalf("the saved state is not applied: %v", err)
	}
}

// comeBack ends the absence of the store.
func (c *child) comeBack() {
	c.r.Helper()
	if err := os.Remove(filepath.Join(c.life.State, awayName)); err != nil {
		c.r.Fatal(err)
	}
}

// rightsLost takes the right to read files and their folder from an agent without an
// administrator's rights, while the files change. The values before stay in force.
func rightsLost(r *Run) time.Duration {
	// The folders above it must let the other user through.
	for dir := r.Store.Dir; dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
		r.allow(dir, 0o755)
	}
	r.Store.SaveAs(savePublicly)
	r.Put(r.names(r.Scale.Keys)...)
	c := r.spawn(false, &syscall.SysProcAttr{Credential: testkit.OrdinaryUser(r)})
	c.await()
	for _, mode := range []os.FileMode{0, 0o755} {
		r.allow(r.Store.Dir, mode)
		r.churn(10)
		r.linger()
	}
	r.heal()
	return c.awaitRecovery()
}

// savePublicly makes a file that the ordinary user of the child can read.
func savePublicly(path string, content []byte) error {
	beside := path + ".new"
	if err := os.WriteFile(beside, content, 0o644); err != nil {
		return err
	}
	return os.Rename(beside, path)
}

// allow changes the mode of a file or folder.
func (r *Run) allow(path string, mode os.FileMode) {
	r.Helper()
	if err := os.Chmod(path, mode); err != nil {
		r.Fatal(err)
	}
}

// noWatches runs the agent in a user namespace that has no file watches left.
func noWatches(r *Run) time.Duration {
	// Root in the namespace is this user outside, so the child can write the limit in
	// /proc but has no other right.
	own := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	group := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	c := r.spawn(true, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: own, GidMappings: group})
	c.await()
	r.churn(20)
	return c.awaitRecovery()
}
