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

	"github.com/keyplane/keyplane/kvdbsync"
)

// A Client is one store of the agent that listens on a socket.
type Client struct {
	socket, store string
	http          http.Client
}

// NewClient makes a client. Nothing is connected before the first call.
func NewClient(socket, store string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return Dial(ctx, socket) }
	return &Client{socket: socket, store: store, http: http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Dial connects to the socket of an agent. Unless this process is root's, it refuses (ErrUnsafe)
// a socket where another user than its own and root listens: that is no agent to trust.
func Dial(ctx context.Context, socket string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	peer, err := peerOf(conn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("who listens cannot be known: %w", err), conn.Close())
	}
	if uid := os.Geteuid(); uid != 0 && peer.Uid != 0 && int(peer.Uid) != uid {
		conn.Close()
		return nil, fmt.Errorf("%w: a process of the user %d listens", ErrUnsafe, peer.Uid)
	}
	return conn, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Stores returns the names of the agent's stores, sorted.
func (c *Client) Stores(ctx context.Context) ([]string, error) {
	out, err := c.about(ctx)
	return out.Stores, err
}

// Label returns the label of the agent. It is empty where the agent does not say.
func (c *Client) Label(ctx context.Context) (string, error) {
	out, err := c.about(ctx)
	return out.Label, err
}

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

// List returns the pairs under prefix, sorted by key.
func (c *Client) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	return c.list(ctx, url.Values{"prefix": {prefix}})
}

// Keys is List without the values.
func (c *Client) Keys(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	return c.list(ctx, url.Values{"prefix": {prefix}, "keys_only": {"1"}})
}

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

// Put writes one key.
func (c *Client) Put(ctx context.Context, key string, value []byte) error {
	return c.key(ctx, "PUT", key, bytes.NewReader(value), decode(&struct{}{}))
}

// Delete removes one key.
func (c *Client) Delete(ctx context.Context, key string) (existed bool, err error) {
	var out deleted
	err = c.key(ctx, "DELETE", key, nil, decode(&out))
	return out.Existed, err
}

func (c *Client) path(what string) string {
	return "/v1/stores/" + url.PathEscape(c.store) + "/" + what
}

func (c *Client) key(ctx context.Context, method, key string, body io.Reader, read func(io.Reader) error) error {
	return c.do(ctx, method, c.path("key"), url.Values{"key": {key}}, body, read)
}

// do makes a request, and reads the answer with read if it is no failure.
func (c *Client) do(ctx context.Context, method, path string, parameters url.Values, body io.Reader, read func(io.Reader) error) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://agent"+path+"?"+parameters.Encode(), body) //nolint:gosec // the transport only reaches the socket
	if err != nil {
		return fmt.Errorf("request to %s: %w", c.socket, err)
	}
	answer, err := c.http.Do(r) //nolint:gosec // the transport only reaches the socket
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("socket %s: %w: is the agent running, and with this label?", c.socket, ErrNoAgent)
	case err != nil:
		return fmt.Errorf("socket %s: %w", c.socket, cause(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return failureOf(answer)
	}
	if err := read(answer.Body); err != nil {
		return fmt.Errorf("socket %s: reading the answer: %w", c.socket, err)
	}
	return nil
}

// cause drops method and URL, which say nothing to people.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func failureOf(answer *http.Response) error {
	var f failure
	if err := json.NewDecoder(answer.Body).Decode(&f); err != nil || f.Error == "" {
		return fmt.Errorf("unexpected answer: %s", answer.Status)
	}
	return f.asError()
}

func decode(into any) func(io.Reader) error {
	return func(r io.Reader) error { return json.NewDecoder(r).Decode(into) }
}
