package faults

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
)

// childFaults need an agent that is less than the test: without the rights of an
// administrator, or in a user namespace of its own.
func childFaults() []Fault {
	return []Fault{
		{Name: "agent killed (SIGKILL) at random moments", Needs: Children, Alone: agentKilled},
		{Name: "right to read a file lost, and given back", Needs: FilesOfPeople | Children, Alone: rightsLost},
		{Name: "kernel gives no file watches (inotify limit)", Needs: FilesOfPeople | Children, Alone: noWatches},
	}
}

// agentKilled kills the agent at random moments while the store is written, before
// and after it has come up.
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
		running, over := c.cmd.Process, make(chan struct{})
		moment := time.Duration(r.Rand.Int64N(int64(200 * time.Millisecond)))
		time.AfterFunc(moment, func() { _ = running.Kill(); close(over) })
		for alive := true; alive; {
			r.churn(1)
			select {
			case <-over:
				alive = false
			default:
			}
		}
		c.restart()
	}
	r.heal()
	return c.settle()
}

// rightsLost keeps an agent without an administrator's rights from files and from
// their folder, while they are written. What they said stays in force.
func rightsLost(r *Run) time.Duration {
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
	return c.settle()
}

func savePublicly(path string, content []byte) error {
	beside := path + ".new"
	if err := os.WriteFile(beside, content, 0o644); err != nil {
		return err
	}
	return os.Rename(beside, path)
}

func (r *Run) allow(path string, mode os.FileMode) {
	r.Helper()
	if err := os.Chmod(path, mode); err != nil {
		r.Fatal(err)
	}
}

// noWatches has the agent in a user namespace that has none left.
func noWatches(r *Run) time.Duration {
	own := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	group := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	c := r.spawn(true, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: own, GidMappings: group})
	c.await()
	r.churn(20)
	return c.settle()
}
