package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/keyplane/keyplane/internal/faults/history"
)

// A child is an agent in a process of its own, which may end at any moment and be started
// again. Its journal records its verbs.
type child struct {
	r    *Run
	life Life
	attr *syscall.SysProcAttr

	// The process: set by start, and ended by kill.
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader

	// Content of the journal so far, over all lives.
	read  int64 // offset in the journal
	has   map[string]string
	verbs []verb
}

// spawn makes a child and starts it. attr may be nil.
func (r *Run) spawn(noWatches bool, attr *syscall.SysProcAttr) *child {
	r.Helper()
	c := r.unborn(attr)
	c.life.NoWatches = noWatches
	c.start()
	return c
}

// unborn makes a child that has not been started. attr may be nil.
func (r *Run) unborn(attr *syscall.SysProcAttr) *child {
	r.Helper()
	config, err := json.Marshal(r.Store.Config)
	if err != nil {
		r.Fatal(err)
	}
	// The test reads it while the child writes it.
	journal := filepath.Join(r.TempDir(), "journal")
	if err := os.WriteFile(journal, nil, 0o600); err != nil {
		r.Fatal(err)
	}
	r.allow(journal, 0o666) // for a child of another user
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	// A test that dies itself must not leave agents behind.
	attr.Pdeathsig = syscall.SIGKILL
	c := &child{
		r: r, attr: attr, has: map[string]string{},
		life: Life{Kind: r.Kind.Name, Config: config, Journal: journal, Grace: r.Scale.Grace},
	}
	r.Cleanup(c.kill)
	return c
}

// start starts this test binary again. TestMain sees lifeVariable and calls Live instead
// of the tests.
func (c *child) start() {
	c.r.Helper()
	life, err := json.Marshal(c.life)
	if err != nil {
		c.r.Fatal(err)
	}
	c.cmd = exec.Command("/proc/self/exe", "-test.run=^$")
	c.cmd.Env = append(os.Environ(), lifeVariable+"="+string(life))
	// A panic of the child must be seen.
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = c.attr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		c.r.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		c.r.Fatal(err)
	}
	c.in, c.answers = in, bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		c.r.Fatal(err)
	}
}

// kill ends the child as SIGKILL does.
func (c *child) kill() {
	if c.cmd == nil {
		return
	}
	_ = c.cmd.Process.Kill() // it may have ended
	_ = c.cmd.Wait()         // the test knows how it ended
}

// restart kills the child and starts it with the same journal and state.
func (c *child) restart() {
	c.r.Helper()
	c.kill()
	c.start()
}

// write makes the child write its store. A child that has died meanwhile is started again.
func (c *child) write(_ context.Context, changes ...history.Change) error {
	err := c.tell(changes)
	if errors.Is(err, errDied) {
		c.restart()
	}
	return err
}

// errDied says that the child ended before it answered; the write may have happened.
var errDied = errors.New("the agent has died")

// tell sends one line of changes to the child and waits for its answer.
func (c *child) tell(changes []history.Change) error {
	// One line per request, and one per answer: the child does one at a time.
	line, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("%w: %w", errDied, err)
	}
	answer, err := c.answers.ReadString('\n')
	if err != nil {
		return fmt.Errorf("%w: %w", errDied, err)
	}
	text, err := strconv.Unquote(answer[:len(answer)-1])
	if err != nil || text == "" {
		return err
	}
	return errors.New(text)
}

// look reads the new part of the journal.
func (c *child) look() {
	c.r.Helper()
	verbs, whole, err := readJournal(c.life.Journal, c.read)
	if err != nil {
		c.r.Fatal(err)
	}
	c.read = whole
	c.verbs = append(c.verbs, verbs...)
	for _, v := range verbs {
		c.has[v.Key] = v.Text
		if v.Text == "" {
			delete(c.has, v.Key)
		}
	}
}

// await waits until the southbound equals the store.
func (c *child) await() {
	c.r.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.Now().Add(c.r.Scale.Bound)
	for c.look(); ; c.look() {
		// The child has no channel for this: it may be dead at any moment.
		bad := history.Complete(c.r.valid, c.has)
		switch {
		case len(bad) == 0:
			return
		case time.Now().After(late):
			c.r.Fatalf("after %v %d names are not as they should be, such as %v", c.r.Scale.Bound, len(bad), bad[0])
		}
		<-tick.C
	}
}

// awaitRecovery is like Run.awaitRecovery, for an agent in a child.
func (c *child) awaitRecovery() time.Duration {
	c.r.Helper()
	if c.r.healed.IsZero() {
		c.r.heal()
	}
	c.r.Write(history.Change{Key: "last", Text: c.r.text()})
	c.await()
	last := c.verbs[len(c.verbs)-1].At
	h := c.r.record.History()
	// The observers of this process saw nothing: the agent ran in the child.
	h.Seen = nil
	for _, v := range c.verbs {
		h.Seen = append(h.Seen, history.Seen{At: c.r.record.Since(v.At), Who: "southbound", Changes: []history.Change{v.Change}})
	}
	c.kill()
	c.r.compareBooks()
	c.r.report(append(history.Ordered(h), history.NoPhantom(h)...))
	return last.Sub(c.r.healed)
}
