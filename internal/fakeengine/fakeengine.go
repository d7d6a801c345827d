// Package fakeengine is a container engine for tests: it serves the part of Docker's API that
// package microservice uses, on a Unix socket. Its containers are processes in network
// namespaces of their own, without anything else of a container.
//
//	engine, err := fakeengine.Start("/tmp/docker.sock")
//	defer engine.Close()
//	id, err := engine.Run("MICROSERVICE_LABEL=web")
//	...
//	err = engine.Kill(id)
//
// The answers have the fields and spelling of Docker 27; fields that nobody reads are left out.
// [Engine.LikePodman] changes the names of events in filters to those of podman.
package fakeengine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// An Engine is the fake. It is safe for use by any goroutine.
type Engine struct {
	server *http.Server
	path   string

	mu         sync.Mutex // guards the fields below
	containers map[string]*container
	order      []string // ids, the newest first, as Docker lists them
	next       int
	followers  map[chan event]func(action string) bool // whether the filter passes an action
	filtered   map[string]string                       // names of actions in filters; none: the same
	inspected  int
	failing    int // inspections that fail yet
}

// A container is a process that does nothing.
type container struct {
	process *exec.Cmd
	env     []string
	labels  map[string]string
}

// An event is one line of the stream of events.
type event struct {
	Type   string
	Action string
	Actor  struct{ ID string }
}

// ErrUnknown reports an id that the engine does not have.
var ErrUnknown = errors.New("no such container")

// Start starts an engine that listens at a path.
func Start(path string) (*Engine, error) {
	e := &Engine{path: path, containers: map[string]*container{}, followers: map[chan event]func(string) bool{}}
	return e, e.Listen()
}

// LikePodman has filters name the end of a container as podman 4 does: its events still say "die",
// but only a filter for "died" passes them.
func (e *Engine) LikePodman() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.filtered = map[string]string{"die": "died"}
}

// FailInspections has the next n inspections of containers fail.
func (e *Engine) FailInspections(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failing = n
}

// Listen lets the engine answer again after Stop.
func (e *Engine) Listen() error {
	_ = os.Remove(e.path) // of an earlier engine
	socket, err := net.Listen("unix", e.path)
	if err != nil {
		return fmt.Errorf("fake engine: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containers/json", e.list)
	mux.HandleFunc("GET /containers/{id}/json", e.inspect)
	mux.HandleFunc("GET /events", e.events)
	e.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func(server *http.Server) { _ = server.Serve(socket) }(e.server)
	return nil
}

// Stop ends all connections and stops listening. The containers go on.
func (e *Engine) Stop() { _ = e.server.Close() }

// Close ends the engine and its containers.
func (e *Engine) Close() {
	e.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.containers {
		c.end()
	}
	clear(e.containers)
}

// Run starts a container with this environment.
func (e *Engine) Run(env ...string) (id string, err error) { return e.run(env, nil) }

// RunLabelled starts a container with this label of the engine.
func (e *Engine) RunLabelled(key, value string) (id string, err error) {
	return e.run(nil, map[string]string{key: value})
}

func (e *Engine) run(env []string, labels map[string]string) (id string, err error) {
	// cat waits for its input, and ends with the test even if that is killed.
	process := exec.Command("cat")
	process.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	_, err = process.StdinPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		return "", fmt.Errorf("fake engine: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	id = fmt.Sprintf("%064x", e.next)
	e.containers[id] = &container{process, env, labels}
	e.order = append([]string{id}, e.order...)
	e.tell("start", id)
	return id, nil
}

// Kill ends a container.
func (e *Engine) Kill(id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.containers[id]
	if c == nil {
		return ErrUnknown
	}
	c.end()
	delete(e.containers, id)
	e.tell("die", id)
	return nil
}

// Pid returns the process of a container.
func (e *Engine) Pid(id string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.containers[id]; c != nil {
		return c.process.Process.Pid
	}
	return 0
}

// Inspected returns how many containers were inspected.
func (e *Engine) Inspected() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.inspected
}

func (c *container) end() {
	_ = c.process.Process.Kill()
	_ = c.process.Wait() // killed
}

// tell sends an event to all followers. The mutex is held.
func (e *Engine) tell(action, id string) {
	one := event{Type: "container", Action: action}
	one.Actor.ID = id
	for f, passes := range e.followers {
		if passes(action) {
			f <- one
		}
	}
}

// list answers GET /containers/json.
func (e *Engine) list(w http.ResponseWriter, _ *http.Request) {
	type listed struct {
		ID     string `json:"Id"`
		State  string
		Labels map[string]string
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	out := []listed{}
	for _, id := range e.order {
		if c := e.containers[id]; c != nil {
			out = append(out, listed{id, "running", c.labels})
		}
	}
	answer(w, http.StatusOK, out)
}

// inspect answers GET /containers/{id}/json.
func (e *Engine) inspect(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inspected++
	if e.failing > 0 {
		e.failing--
		answer(w, http.StatusInternalServerError, map[string]string{"message": "timeout"})
		return
	}
	id := r.PathValue("id")
	c := e.containers[id]
	if c == nil {
		answer(w, http.StatusNotFound, map[string]string{"message": "No such container: " + id})
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"Id":     id,
		"State":  map[string]any{"Status": "running", "Running": true, "Pid": c.process.Process.Pid},
		"Config": map[string]any{"Env": c.env, "Labels": c.labels},
	})
}

// events answers GET /events until the connection ends.
func (e *Engine) events(w http.ResponseWriter, r *http.Request) {
	var filters struct{ Type, Event []string }
	err := json.Unmarshal([]byte(r.URL.Query().Get("filters")), &filters)
	if err != nil || !slices.Equal(filters.Type, []string{"container"}) {
		answer(w, http.StatusBadRequest, map[string]string{"message": "the fake has events of containers only"})
		return
	}
	mine := make(chan event, 1024)
	e.mu.Lock()
	e.followers[mine] = func(action string) bool {
		return len(filters.Event) == 0 || slices.Contains(filters.Event, cmp.Or(e.filtered[action], action))
	}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.followers, mine)
		e.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush() // fails if the connection has ended, as the next write does
	for {
		select {
		case <-r.Context().Done():
			return
		case one := <-mine:
			if json.NewEncoder(w).Encode(one) != nil || flush.Flush() != nil {
				return
			}
		}
	}
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(content) // fails only if the connection has ended
}
