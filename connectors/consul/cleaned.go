package consul

import (
	"errors"
	"path"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/kvdbsync"
)

// isCleaned reports whether Consul would take the key in a URL for another one. It cleans the path of a URL, so
// a//b becomes a/b. Such a key goes into the body of a transaction. key has no leading slash.
func isCleaned(key string) bool { return path.Clean("/"+key) != "/"+strings.TrimSuffix(key, "/") }

// errStale says that a key has changed since it was read.
var errStale = errors.New("the key has changed")

// getByTransaction returns the pair, or nil if there is none.
func (c *Client) getByTransaction(key string, r request) (*api.KVPair, error) {
	_, answer, _, err := c.api.KV().Txn(api.KVTxnOps{{Verb: api.KVGet, Key: key}}, r.read())
	switch {
	case err != nil:
		return nil, err
	case answer != nil && len(answer.Results) == 1:
		return answer.Results[0], nil
	case answer == nil || len(answer.Errors) != 1 || answer.Errors[0] == nil:
		return nil, ErrNotConsul
	}
	err = reason(printable.Cut(answer.Errors[0].What, maxErrorBody))
	if errors.Is(err, kvdbsync.ErrNotFound) {
		return nil, nil
	}
	return nil, err
}
