// Package microservice follows the containers that have a label, so that values can refer to
// their network namespaces as MICROSERVICE.
//
//	tracker, err := microservice.New(microservice.Options{...})
//	spaces := netns.New(netns.Options{Container: tracker.Path})
//	err = tracker.Register(s, "linux")
//	...
//	go tracker.Run(ctx)
//
// The label of a container is MICROSERVICE_LABEL in its environment, or else the engine's
// label with that name. While such a container runs, linux/microservice/<label> is OBTAINED.
//
//	state         meaning                                    next
//	absent        no container with the label runs           obtained, when one is listed
//	obtained      Path leads to its namespace                absent, or replaced
//	replaced      another container has the label now; the   obtained, when the scheduler has
//	              label counts as absent                     removed everything in the old one
//
// Events of the engine are only hints: each leads to a listing, and the listing decides. While
// the engine is not reachable, containers count as running for as long as their namespace
// exists. The goroutine of Run follows the events. Retrieve lists too; a mutex guards the state.
//
// Tests: a fake engine (internal/fakeengine) with processes in namespaces of their own, and
// podman with real containers (TestPodman in descriptors/linux).
package microservice

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/internal/appear"
	"github.com/keyplane/keyplane/internal/backoff"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

const (
	// Name is the name of the descriptor.
	Name = "microservice"
	// ConnectionName is the name of the connection to the container engine. While that cannot be asked, the
	// containers, and what is in them, are unknown.
	ConnectionName = "containers"
)

// variable is the name of the environment variable, or of the engine's label.
const variable = "MICROSERVICE_LABEL"

// Options configure a Tracker. Log is required.
type Options struct {
	// Engine is the address of the container engine: unix:///PATH or tcp://HOST:PORT.
	// Defaults to DOCKER_HOST in the environment, else to unix:///var/run/docker.sock.
	Engine string
	Log    *slog.Logger
	// Host finds the namespaces. Defaults to this host.
	Host kernel.Host
}

// A Tracker knows the containers with a label.
type Tracker struct {
	opts   Options
	engine *engine
	sched  *scheduler.Scheduler
	link   *scheduler.Connection
	wake   wake.Signal // set when the containers must be listed

	ready bool   // the engine answered last time; the goroutine of listAgain owns it and why
	why   string // the last error of the engine

	listing sync.Mutex // held during a listing; guards known
	// known are the containers that were inspected, by id.
	known map[string]container

	mu       sync.Mutex           // guards the fields below; never held during a request
	obtained map[string]container // by label
	replaced map[string]bool      // labels that wait for the scheduler
}

// A container is one that runs, with the namespace of its first process. The path is in /proc,
// so it ends with the process; ns detects a process id that was reused.
type container struct {
	label string // "": it has none
	path  string
	ns    kernel.ID
}

// New returns a Tracker that knows no container yet.
func New(o Options) (*Tracker, error) {
	if o.Host == nil {
		o.Host = kernel.This{}
	}
	environment := os.Getenv("DOCKER_HOST")
	if _, err := newEngine(environment); err != nil && environment != "" && o.Engine == "" {
		o.Log.Warn("DOCKER_HOST is ignored; using "+defaultHost, "err", err)
		environment = ""
	}
	e, err := newEngine(cmp.Or(o.Engine, environment, defaultHost))
	if err != nil {
		return nil, err
	}
	return &Tracker{
		opts: o, engine: e, wake: wake.New(),
		obtained: map[string]container{}, replaced: map[string]bool{}, known: map[string]container{},
	}, nil
}

// Register adds the descriptor to s. Those that open namespaces of containers name it in
// RetrieveAfter.
func (t *Tracker) Register(s *scheduler.Scheduler) (err error) {
	t.sched = s
	if t.link, err = s.Connection(ConnectionName); err != nil {
		return err
	}
	_, err = scheduler.Register(s.OnConnection(ConnectionName), scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name: Name, Prefix: keys.Microservices, Place: true, Retrieve: t.retrieve, Absent: absentLabel,
	})
	return err
}

// absentLabel says why there is no microservice with a label.
func absentLabel(key string) string {
	return "no running container has " + variable + "=" + strings.TrimPrefix(key, keys.Microservices)
}

// Path returns the file of the namespace of the container with that label, or "".
func (t *Tracker) Path(label string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.obtained[label].path
}

// found is the form in which containers are retrieved.
type found = scheduler.Found[*emptypb.Empty, struct{}]

// retrieve lists the containers. While the engine cannot be asked, it is unknown which of them run.
func (t *Tracker) retrieve(ctx context.Context, _ []scheduler.Desired[*emptypb.Empty]) iter.Seq2[found, error] {
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		running, err := t.list(ctx, learns)
		if err != nil {
			yield(found{}, err)
			return
		}
		for _, label := range slices.Sorted(maps.Keys(running)) {
			if !yield(found{Key: keys.Microservice(label), Value: &emptypb.Empty{}, Foreign: true}, nil) {
				return
			}
		}
	})
}

// unserved reports whether no engine listens at the address.
func unserved(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// The bounds of the delay before the engine is tried again.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// Run follows the containers until ctx ends.
func (t *Tracker) Run(ctx context.Context) error {
	var listing sync.WaitGroup
	defer listing.Wait()
	listing.Go(func() { t.listAgain(ctx) })
	pause := backoff.Backoff{Min: firstRetry, Max: lastRetry}
	absent := appear.Absence{Path: t.engine.socket}
	defer absent.End()
	connected := false
	for {
		err := t.engine.follow(ctx, func() {
			pause.Reset()
			absent.End()
			connected = true
			t.wake.Set()
		})
		if ctx.Err() != nil {
			return nil
		}
		// A host without containers is not worth a warning.
		level := slog.LevelDebug
		if connected || !unserved(err) {
			level = slog.LevelWarn
		}
		t.opts.Log.Log(ctx, level, "the container engine is not reachable; microservices that run stay", "err", err)
		connected = false
		t.wake.Set()   // containers may have ended together with the engine
		absent.Watch() // if it cannot, Wait tries again
		if absent.Wait(ctx, pause.Next(), pause.Longest() && errors.Is(err, fs.ErrNotExist)) {
			pause.Reset()
		}
	}
}

// listAgain lists the containers each time that something may have changed. The signal merges
// changes, so all events during a listing cause one more. A listing that failed is repeated,
// since no event may follow: an engine under load fails at single requests. An engine that does
// not listen has Run wake us when it does.
func (t *Tracker) listAgain(ctx context.Context) {
	pause := backoff.Backoff{Min: firstRetry, Max: lastRetry}
	level := slog.LevelWarn
	var again <-chan time.Time // nil: the last listing has not failed
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake.C():
		case <-again:
		}
		_, err := t.list(ctx, true)
		if ctx.Err() == nil {
			t.tell(err)
		}
		if err != nil && !unserved(err) && ctx.Err() == nil {
			t.opts.Log.Log(ctx, level, "cannot list containers; microservices may be out of date; trying again", "err", err)
			level, again = slog.LevelDebug, time.After(pause.Next())
		} else {
			pause.Reset()
			level, again = slog.LevelWarn, nil
		}
		t.awaitReplaced(ctx)
	}
}

// tell tells the scheduler whether the engine can be asked. Only listAgain calls it.
func (t *Tracker) tell(err error) {
	switch {
	case t.link == nil:
	case err == nil && !t.ready:
		t.ready = true
		t.link.Ready()
	case err != nil && (t.ready || t.why != err.Error()):
		t.ready, t.why = false, err.Error()
		t.link.Lost(err)
	}
}

// list reads the containers from the engine and announces the differences. If the engine cannot
// be asked, containers whose process has ended are withdrawn, and the error is returned. An
// error of one inspection leaves everything unchanged: a partial list would withdraw containers
// that run. It returns the running containers by label. Without announces, somebody only looks.
func (t *Tracker) list(ctx context.Context, announces bool) (map[string]container, error) {
	t.listing.Lock()
	defer t.listing.Unlock()
	all, err := t.engine.list(ctx)
	t.mu.Lock()
	before := maps.Clone(t.obtained)
	t.mu.Unlock()
	if err != nil && announces {
		maps.DeleteFunc(before, func(_ string, c container) bool { return !t.lives(c) })
		t.announce(before)
	}
	if err != nil {
		return nil, err
	}
	running, known := map[string]container{}, map[string]container{}
	for _, one := range all {
		c, err := t.identify(ctx, one)
		if err != nil {
			return nil, err
		}
		known[one.ID] = c
		if c.label == "" || c.path == "" {
			continue
		}
		other, twice := running[c.label]
		if twice && other.ns != c.ns {
			t.opts.Log.Warn("two containers have the same label; the one that had it first is used", "label", c.label)
		}
		if !twice || c.ns == before[c.label].ns {
			running[c.label] = c
		}
	}
	t.known = known // it only saves inspections
	if !announces {
		return running, nil
	}
	t.announce(running)
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.obtained), nil
}

// lives reports whether the path of c still leads to its namespace.
func (t *Tracker) lives(c container) bool {
	id, err := t.opts.Host.Stat(c.path)
	return err == nil && id == c.ns
}

// identify returns label and namespace of a container. The answer of an earlier inspection
// holds while its process lives; the environment of a container never changes.
func (t *Tracker) identify(ctx context.Context, one listed) (container, error) {
	if c, ok := t.known[one.ID]; ok && (c.label == "" || c.path != "" && t.lives(c)) {
		return c, nil
	}
	all, there, err := t.engine.inspect(ctx, one.ID)
	if err != nil || !there {
		return container{}, err
	}
	c := container{label: labelOf(one, all)}
	if c.label == "" || !all.State.Running || all.State.Pid <= 0 {
		return c, nil
	}
	path := filepath.Join("/proc", strconv.Itoa(all.State.Pid), "ns/net")
	id, err := t.opts.Host.Stat(path)
	if err != nil {
		t.opts.Log.Warn("cannot find the namespace of a container", "label", c.label, "container", one.ID, "err", err, "remedy", remedyFor(err))
		return c, nil
	}
	c.path, c.ns = path, id
	return c, nil
}

// remedyFor returns what to check if the namespace of a process cannot be found. The kernel hides the
// namespaces of processes with other rights, such as those of ordinary containers of root; see ptrace(2).
func remedyFor(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "give the agent CAP_SYS_PTRACE"
	}
	return "share the process ids of the host with the agent"
}

// labelOf returns the label of a container, or "".
func labelOf(one listed, all inspected) string {
	for _, entry := range all.Config.Env {
		if value, ok := strings.CutPrefix(entry, variable+"="); ok {
			return value
		}
	}
	return one.Labels[variable]
}

// announce makes running the obtained containers, and tells the scheduler about differences. A
// label whose container has another namespace is first withdrawn: the scheduler merges
// observations of one key, and would not notice the change.
func (t *Tracker) announce(running map[string]container) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var seen []scheduler.Observed
	for label, was := range t.obtained {
		if now, ok := running[label]; ok && now.ns == was.ns {
			continue
		}
		delete(t.obtained, label)
		t.replaced[label] = true
		seen = append(seen, scheduler.Observed{Key: keys.Microservice(label)})
	}
	for label, c := range running {
		if _, ok := t.obtained[label]; ok {
			t.obtained[label] = c
			continue
		}
		if t.replaced[label] {
			continue
		}
		t.obtained[label] = c
		seen = append(seen, scheduler.Observed{Key: keys.Microservice(label), Value: &emptypb.Empty{}})
	}
	if len(t.replaced) > 0 {
		t.wake.Set()
	}
	if t.sched != nil && len(seen) > 0 {
		t.sched.Observe(seen...)
	}
}

// awaitReplaced waits until the scheduler knows that the withdrawn labels are gone, and has the
// containers listed again if there were any. Without the wait, the scheduler would merge both
// observations, and values would stay in the old namespace.
func (t *Tracker) awaitReplaced(ctx context.Context) {
	t.mu.Lock()
	labels := slices.Collect(maps.Keys(t.replaced))
	t.mu.Unlock()
	for _, label := range labels {
		if !t.awaitGone(ctx, keys.Microservice(label)) {
			return
		}
		t.mu.Lock()
		delete(t.replaced, label)
		t.mu.Unlock()
		t.wake.Set()
	}
}

// awaitGone waits until the scheduler has no value under key. It returns false if ctx ends
// before.
func (t *Tracker) awaitGone(ctx context.Context, key string) bool {
	w := t.sched.Watch(key)
	defer w.Close()
	for {
		if _, there := t.sched.Status(key); !there {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-w.Ready():
			w.Take()
		}
	}
}
