package microservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// An engine is a client of Docker's API (docs.docker.com/reference/api/engine), as far as
// microservices need it: listing and inspecting containers, and their events. podman serves
// the same requests. The API's version is left out of the paths, so that the engine uses the
// newest one that it has; the fields below are in all versions since 1.24.
type engine struct {
	client *http.Client
	base   string
	socket string // its path; "": none, but a port
}

// maxListing limits the size of the list of containers, in bytes. A container has 1 to 4 kB
// in it, so there is room for more than 2,000: far above the 500 of a large host.
const maxListing = 8 << 20

// maxContainer limits the description of one container, in bytes: in the list, and when it
// is inspected. The latter has 10 to 100 kB. Small fields, such as empty labels, take ten
// times their bytes when they are decoded.
const maxContainer = 1 << 20

// maxContainers limits their number, since the shortest description is "{}".
const maxContainers = 10_000

// maxEvent limits the size of an event, in bytes. Events have about 1 kB.
const maxEvent = 1 << 20

// patience is the maximum duration of a request, except for the events.
const patience = 5 * time.Second

// defaultHost is the address of Docker on a Linux host.
const defaultHost = "unix:///var/run/docker.sock"

// errHost reports an address that cannot be used.
var errHost = errors.New("expected unix:///PATH or tcp://HOST:PORT")

// errEvent reports an event of more than maxEvent bytes.
var errEvent = errors.New("the event is too large")

// errAnswer reports an answer beyond maxListing, maxContainer or maxContainers.
var errAnswer = errors.New("the answer is too large")

// errRefused reports an answer with an error status.
var errRefused = errors.New("the container engine refused the request")

// CheckEngine returns an error if an engine cannot have this address. Empty is the default one.
func CheckEngine(host string) error {
	if host == "" {
		return nil
	}
	_, err := newEngine(host)
	return err
}

// newEngine returns a client for an address like those of DOCKER_HOST. It does not connect. The
// error wraps errHost.
func newEngine(host string) (*engine, error) {
	kind, rest, _ := strings.Cut(host, "://")
	if rest == "" {
		return nil, fmt.Errorf("container engine %q: %w", host, errHost)
	}
	var network string
	e := &engine{base: "http://engine"} // the name is not looked up
	switch kind {
	case "unix":
		network, e.socket = "unix", rest
	case "tcp", "http":
		network, e.base = "tcp", "http://"+rest
	default:
		return nil, fmt.Errorf("container engine %q: %w", host, errHost)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, rest)
	}
	e.client = &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConns: 1, IdleConnTimeout: patience}}
	return e, nil
}

// A listed container is one that runs. The fields have the names of the API's JSON.
type listed struct {
	ID     string
	Labels map[string]string
}

// An inspected container has its environment and its first process.
type inspected struct {
	State struct {
		Running bool
		// in the process ids of the engine's host; 0 if the container does not run
		Pid int
	}
	Config struct {
		// entries of the form NAME=VALUE
		Env []string
	}
}

// list returns the containers that run.
func (e *engine) list(ctx context.Context) (out []listed, err error) {
	err = e.get(ctx, "/containers/json", maxListing, func(in *json.Decoder) error {
		out, err = readList(in)
		return err
	})
	return out, err
}

// readList decodes containers one by one. The fields that are not needed of one are dropped
// before the next one is read.
func readList(in *json.Decoder) (out []listed, err error) {
	start, err := in.Token()
	if err != nil || start == nil { // null: there are none
		return nil, err
	}
	if start != json.Delim('[') {
		return nil, fmt.Errorf("%v: expected a list", start)
	}
	for in.More() {
		if len(out) == maxContainers {
			return nil, fmt.Errorf("%w: more than %d containers", errAnswer, maxContainers)
		}
		var text json.RawMessage
		if err := in.Decode(&text); err != nil {
			return nil, err
		}
		if len(text) > maxContainer {
			return nil, fmt.Errorf("%w: a container of more than %d bytes", errAnswer, maxContainer)
		}
		var one listed
		if err := json.Unmarshal(text, &one); err != nil {
			return nil, err
		}
		out = append(out, listed{ID: one.ID, Labels: map[string]string{variable: one.Labels[variable]}})
	}
	_, err = in.Token()
	return out, err
}

// inspect returns one container. It is false if there is none with that id now.
func (e *engine) inspect(ctx context.Context, id string) (out inspected, there bool, err error) {
	err = e.get(ctx, "/containers/"+url.PathEscape(id)+"/json", maxContainer, func(in *json.Decoder) error { return in.Decode(&out) })
	if errors.Is(err, os.ErrNotExist) {
		return inspected{}, false, nil
	}
	return out, err == nil, err
}

// get has decode read the answer to a GET request. The limit of the size protects the agent
// from an address that serves something else.
func (e *engine) get(ctx context.Context, path string, limit int64, decode func(*json.Decoder) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := e.open(ctx, path)
	if err != nil {
		return err
	}
	defer body.Close()
	bounded := &io.LimitedReader{R: body, N: limit + 1}
	err = decode(json.NewDecoder(&dense{r: bounded}))
	if err != nil && bounded.N <= 0 {
		err = fmt.Errorf("%w; the maximum is %d bytes", errAnswer, limit)
	}
	if err != nil {
		return fmt.Errorf("container engine: %s: %w", path, err)
	}
	return nil
}

// mostSpaces bounds the white space between two parts of an answer.
const mostSpaces = 64 << 10

// dense refuses white space without end: the decoder looks at all of it again with each piece that it reads.
type dense struct {
	r      io.Reader
	spaces int // at the end of what was read
}

func (d *dense) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	for _, b := range p[:n] {
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			d.spaces = 0
		} else if d.spaces++; d.spaces > mostSpaces {
			return n, fmt.Errorf("%w: more than %d spaces in a row", errAnswer, mostSpaces)
		}
	}
	return n, err
}

// open sends a GET request and returns the body of the answer. The caller closes it. The error
// wraps os.ErrNotExist for status 404, and errRefused for others.
func (e *engine) open(ctx context.Context, path string) (io.ReadCloser, error) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, e.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("container engine: %w", err)
	}
	answer, err := e.client.Do(ask)
	if err != nil {
		return nil, fmt.Errorf("container engine: %w", err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	var said struct {
		Message string `json:"message"`
	}
	_ = json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(&said) // without a message the status must do
	if answer.StatusCode == http.StatusNotFound {
		err = os.ErrNotExist
	} else {
		err = errRefused
	}
	return nil, fmt.Errorf("%w: %s: %s %s", err, path, answer.Status, said.Message)
}

// follow calls changed when the engine listens, and then for each event that may change the
// namespaces of containers. It returns when ctx or the connection ends. The error wraps errEvent
// if an event exceeds maxEvent: an address that serves something else may never end a line.
func (e *engine) follow(ctx context.Context, changed func()) error {
	// podman 4 calls an event "die", as Docker does, but its filter passes it only as "died". Neither
	// minds names that it does not have. Events of other kinds, such as those of health checks, are
	// frequent.
	filters := url.QueryEscape(`{"type":["container"],"event":["start","die","died","stop","kill","destroy","remove","rename"]}`)
	body, err := e.open(ctx, "/events?filters="+filters)
	if err != nil {
		return err
	}
	defer body.Close()
	changed()
	one := &io.LimitedReader{R: body}
	for events := json.NewDecoder(one); ; {
		one.N = maxEvent
		var ignored struct{} // every event leads to a listing, so its content does not matter
		err := events.Decode(&ignored)
		if err != nil && one.N <= 0 {
			err = fmt.Errorf("%w; the maximum is %d bytes", errEvent, maxEvent)
		}
		if err != nil {
			return fmt.Errorf("container engine: events: %w", err)
		}
		changed()
	}
}
