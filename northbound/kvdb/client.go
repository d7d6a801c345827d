package kvdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"

	"github.com/keyplane/keyplane/internal/bounded"
	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A Client accesses one store of the agent behind a socket. It is safe for
// concurrent use.
type Client struct {
	socket, store string
	http          http.Client
}

// mostAnswer and mostFailure bound an answer with keys, and one with an error, in bytes: anything may listen at a path.
const mostAnswer, mostFailure = 1 << 30, 1 << 20

// NewClient returns a client. It connects at the first call. The caller calls Close.
func NewClient(socket, store string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return reach.Dial(ctx, socket) }
	// An agent answers no redirects.
	last := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{socket: socket, store: store, http: http.Client{Transport: &http.Transport{DialContext: dial}, CheckRedirect: last}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Stores returns the names of the agent's stores, sorted.
func (c *Client) Stores(ctx context.Context) ([]string, error) {
	out, err := c.about(ctx)
	return out.Stores, err
}

// ByPriority returns the names of the agent's stores, the highest priority first. It is empty for
// agents of earlier releases.
func (c *Client) ByPriority(ctx context.Context) ([]string, error) {
	out, err := c.about(ctx)
	return out.ByPriority, err
}

// Writable returns those of ByPriority that can be written.
func (c *Client) Writable(ctx context.Context) ([]string, error) {
	out, err := c.about(ctx)
	return out.Writable, err
}

// Label returns the label of the agent. It is empty for agents of earlier releases.
func (c *Client) Label(ctx context.Context) (string, error) {
	out, err := c.about(ctx)
	return out.Label, err
}

// about queries label and stores.
func (c *Client) about(ctx context.Context) (out about, err error) {
	err = c.do(ctx, "GET", "/v1/stores", nil, nil, decode(&out))
	return out, err
}

// Get returns the value of a key, or kvdbsync.ErrNotFound.
func (c *Client) Get(ctx context.Context, key string) (value []byte, err error) {
	err = c.key(ctx, "GET", key, nil, func(r io.Reader) (err error) {
		value, err = io.ReadAll(r)
		return err
	})
	return value, err
}

// List returns the pairs with this prefix, sorted by key.
func (c *Client) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	return c.list(ctx, url.Values{"prefix": {prefix}})
}

// Keys is List without the values.
func (c *Client) Keys(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	return c.list(ctx, url.Values{"prefix": {prefix}, "keys_only": {"1"}})
}

// list decodes the pairs line by line.
func (c *Client) list(ctx context.Context, parameters url.Values) (pairs []kvdbsync.Pair, err error) {
	err = c.do(ctx, "GET", c.path("keys"), parameters, nil, func(r io.Reader) error {
		for lines := json.NewDecoder(r); ; {
			var p pair
			err := lines.Decode(&p)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			pairs = append(pairs, kvdbsync.Pair{Key: p.Key, Value: p.Value})
		}
	})
	return pairs, err
}

// Put writes one key. The agent validates nothing here; it does so when the store
// reports the change.
func (c *Client) Put(ctx context.Context, key string, value []byte) error {
	return c.key(ctx, "PUT", key, bytes.NewReader(value), decode(&struct{}{}))
}

// Delete removes one key and reports whether it existed.
func (c *Client) Delete(ctx context.Context, key string) (existed bool, err error) {
	var out deleted
	err = c.key(ctx, "DELETE", key, nil, decode(&out))
	return out.Existed, err
}

// Apply makes all changes at once, or none; a nil Value deletes. The error is
// kvdbsync.ErrTooLarge if the store cannot make as many at once.
func (c *Client) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	pairs := make([]pair, len(changes))
	for i, change := range changes {
		pairs[i] = pair{change.Key, change.Value}
	}
	body, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	return c.do(ctx, "POST", c.path("apply"), nil, bytes.NewReader(body), decode(&struct{}{}))
}

// PutIfSame stores value if the key holds exactly the bytes of old, and reports whether it stored it.
// The agent's store compares and writes in one step.
func (c *Client) PutIfSame(ctx context.Context, key string, old, value []byte) (stored bool, err error) {
	body, err := json.Marshal(replacement{key, old, value})
	if err != nil {
		return false, err
	}
	var out replaced
	err = c.do(ctx, "POST", c.path("replace"), nil, bytes.NewReader(body), decode(&out))
	return out.Stored, err
}

// path returns the URL path of a resource of the store.
func (c *Client) path(resource string) string {
	return "/v1/stores/" + url.PathEscape(c.store) + "/" + resource
}

// key sends a request for one key.
func (c *Client) key(ctx context.Context, method, key string, body io.Reader, read func(io.Reader) error) error {
	return c.do(ctx, method, c.path("key"), url.Values{"key": {key}}, body, read)
}

// do sends a request and passes the answer to read, unless it is an error.
func (c *Client) do(ctx context.Context, method, path string, parameters url.Values, body io.Reader, read func(io.Reader) error) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://agent"+path+"?"+parameters.Encode(), body) //nolint:gosec // the transport only reaches the socket
	if err != nil {
		return fmt.Errorf("request to %s: %w", c.socket, err)
	}
	answer, err := c.http.Do(r) //nolint:gosec // the transport only reaches the socket
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("socket %s: %w: %s", c.socket, ErrNoAgent, reach.Absent(os.Geteuid(), c.socket))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("socket %s: %w: %s", c.socket, fs.ErrPermission, reach.Closed)
	case err != nil:
		return fmt.Errorf("socket %s: %w", c.socket, cause(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return failureOf(answer)
	}
	if err := read(bounded.Reader(answer.Body, mostAnswer)); err != nil {
		return fmt.Errorf("socket %s: reading the answer: %w", c.socket, err)
	}
	return nil
}

// cause returns the error without the method and URL that package net/http adds.
func cause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// failureOf converts an answer with an error status.
func failureOf(answer *http.Response) error {
	var f failure
	if err := json.NewDecoder(bounded.Reader(answer.Body, mostFailure)).Decode(&f); err != nil || f.Error == "" {
		return fmt.Errorf("unexpected answer: %s", answer.Status)
	}
	return f.asError()
}

// decode returns a function that decodes JSON.
func decode(into any) func(io.Reader) error {
	return func(r io.Reader) error { return json.NewDecoder(r).Decode(into) }
}
