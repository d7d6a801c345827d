package consul

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A question is a request for all pairs under a prefix.
type question struct {
	prefix string        // in Consul's form, without the leading slash
	after  uint64        // wait until the index exceeds this one; 0: do not wait, and read consistently
	wait   time.Duration // maximum time to wait
	// same requires the connection of the previous answer. Another connection may lead to
	// another server, or to a server that lost its data. That server would wait for an
	// index that it reaches only after years. The transport reconnects silently.
	same bool
}

// An answer is the head of Consul's response; the pairs are not read yet.
type answer struct {
	index uint64
	body  io.ReadCloser
	bytes int  // of the body, read so far
	last  bool // the server closes the connection after this answer
	end   context.CancelCauseFunc

	unnamed unnamed // pairs read so far

	bounds kvdbsync.Bounds
}

// list sends a question. The library reads an answer whole before it decodes it, and
// Consul sends a large prefix again with each change. So this package reads the answer
// pair by pair.
func (c *client) list(ctx context.Context, q question) (*answer, error) {
	limit := c.cfg.OperationTimeout
	if q.after > 0 {
		limit += q.wait + q.wait/16 // Consul adds up to a sixteenth, to spread the answers over time
	}
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(limit, func() { cancel(noAnswer(limit)) })
	defer late.Stop()
	a, err := c.ask(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if q.same && !got.Reused {
			cancel(ErrReconnected)
		}
	}}), q)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	a.body, a.end, a.bounds = c.patiently(ctx, cancel, a.body), cancel, c.cfg.Bounds
	return a, nil
}

// ask sends a question with the present token, which a file may have changed meanwhile.
// The answer is read while it arrives; the caller closes it.
func (c *client) ask(ctx context.Context, q question) (*answer, error) {
	token, err := c.cfg.token()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url(q), http.NoBody)
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("X-Consul-Token", token)
	}
	if auth := c.base.HttpAuth; auth != nil {
		request.SetBasicAuth(auth.Username, auth.Password)
	}
	response, err := c.lists.Do(request)
	if err != nil {
		return nil, err
	}
	index, err := head(response, token)
	if err != nil {
		response.Body.Close()
		return nil, err
	}
	return &answer{index: index, body: pairsOf(response), last: response.Close}, nil
}

// url returns the address of a question. The first one is consistent; later ones wait for
// an index, which makes them as new as the caller needs. This holds for a server that lags
// behind the leader, too: it answers when it has exceeded the index. If it reaches the wait
// time before that, its answer has a lower index, and is refused like that of a store that
// went back. A server applies only what most servers have, so it never takes back an index.
func (c *client) url(q question) string {
	query := url.Values{"recurse": {""}}
	for name, value := range map[string]string{"dc": c.base.Datacenter, "ns": c.base.Namespace, "partition": c.base.Partition} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.after == 0 {
		query.Set("consistent", "")
	} else {
		query.Set("index", strconv.FormatUint(q.after, 10))
		query.Set("wait", strconv.FormatInt(q.wait.Milliseconds(), 10)+"ms")
		if c.cfg.AllowStale {
			query.Set("stale", "")
		}
	}
	where := url.URL{Scheme: c.base.Scheme, Host: c.base.Address, Path: c.base.PathPrefix + "/v1/kv/" + q.prefix, RawQuery: query.Encode()}
	if strings.HasPrefix(where.Host, "/") { // a unix socket
		where.Host = "localhost"
	}
	return where.String()
}

// head checks that the response is an answer of Consul, and that nothing was omitted.
func head(r *http.Response, token string) (index uint64, err error) {
	none := r.StatusCode == http.StatusNotFound
	if r.StatusCode != http.StatusOK && !none {
		text, _ := io.ReadAll(io.LimitReader(r.Body, maxErrorBody)) // the error text, as far as it can be read
		return 0, api.StatusError{Code: r.StatusCode, Body: strings.TrimSpace(string(text))}
	}
	index, err = strconv.ParseUint(r.Header.Get("X-Consul-Index"), 10, 64)
	if err != nil || index > math.MaxInt64 {
		return 0, ErrNotConsul
	}
	// Without a token Consul does not report that it has omitted keys.
	unsaid := none && token == "" && r.Header.Get("X-Consul-Default-Acl-Policy") == "deny"
	if unsaid || r.Header.Get("X-Consul-Results-Filtered-By-Acls") == "true" {
		return 0, ErrFiltered
	}
	return index, nil
}

// pairsOf returns the array of pairs in the answer.
func pairsOf(r *http.Response) io.ReadCloser {
	if r.StatusCode == http.StatusOK {
		return r.Body
	}
	r.Body.Close()
	return io.NopCloser(strings.NewReader("[]"))
}

// A pair is one key in the form that Consul sends.
type pair struct {
	Key         string
	ModifyIndex uint64
	Value       json.RawMessage // base64 in quotes, or null; valid until the next pair is read
}

// value decodes the value. The error wraps kvdbsync.ErrTooMuch if the value is too large.
func (p *pair) value(bounds kvdbsync.Bounds) (value []byte, err error) {
	bounds = bounds.WithDefaults()
	text := bytes.Trim(p.Value, `"`)
	if _, after, ok := bytes.Cut(text, []byte{'!'}); ok {
		if length, err := strconv.ParseInt(string(after), 10, 64); err == nil {
			if err := bounds.CheckValue(length / 4 * 3); err != nil {
				return nil, err
			}
		}
	}
	if string(text) == "null" {
		return []byte{}, nil // an empty value is not a deleted one
	}
	value = make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(value, text)
	if err != nil {
		return nil, fmt.Errorf("value of %s: %w", p.Key, err)
	}
	return value[:n:n], bounds.CheckValue(int64(n))
}

// isFolder reports whether the pair is a folder of Consul's web pages: a key that ends
// with a slash and has no value. It has no meaning for the agent.
func (p *pair) isFolder() bool {
	return strings.HasSuffix(p.Key, "/") && (string(p.Value) == "null" || string(p.Value) == `""`)
}

// each reads the pairs, which Consul sends in the order of their keys, each once. It returns an error if the
// answer was cut off. It leaves out folders, and the pairs whose keys cannot be told: they have no order, and
// several may look the same.
func (a *answer) each(visit func(*pair) error) error {
	in := json.NewDecoder(newSieve(a, a.bounds))
	tally := kvdbsync.NewTally(a.bounds)
	if start, err := in.Token(); err != nil || start != json.Delim('[') {
		return errors.Join(fmt.Errorf("the answer begins with %v: expected a list of pairs", start), err)
	}
	var p pair
	last, first := "", true
	for in.More() {
		p = pair{Value: p.Value[:0]}
		if err := in.Decode(&p); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		if p.ModifyIndex > math.MaxInt64 {
			return fmt.Errorf("%w: %.200q has the index %d", ErrNotConsul, p.Key, p.ModifyIndex)
		}
		if err := tally.Pair(p.Key, len(p.Value)*3/4); err != nil {
			return err
		}
		if p.isUnnamed() {
			a.unnamed.note(&p)
			continue
		}
		if !first && p.Key <= last {
			return fmt.Errorf("%w: the key %.200q comes after %.200q", ErrNotConsul, p.Key, last)
		}
		last, first = p.Key, false
		if p.isFolder() {
			continue
		}
		if err := visit(&p); err != nil {
			return err
		}
	}
	return readEnd(in)
}

// readEnd reads the end of the list, and of the answer: otherwise the connection could not be
// used again. More after the list would mean that the server has lost its place in it.
func readEnd(in *json.Decoder) error {
	_, err := in.Token()
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	switch more, err := in.Token(); {
	case err == nil:
		return fmt.Errorf("%w: %.80q follows the list of pairs", ErrNotConsul, fmt.Sprint(more))
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("reading the end of the answer: %w", err)
	}
	return nil
}

// Read implements io.Reader and counts the bytes.
func (a *answer) Read(b []byte) (int, error) {
	n, err := a.body.Read(b)
	a.bytes += n
	return n, err
}

// close ends the request, also in the middle of its answer.
func (a *answer) close() {
	a.body.Close()
	a.end(nil)
}
