// Package kvdb lets users edit the agent's stores through a Unix socket of the
// agent.
//
//	s := kvdb.Server{Socket: path, Stores: map[string]kvdbsync.Store{"bolt": db}}
//	err := s.Run(ctx)
//
//	c := kvdb.NewClient(path, "bolt")
//	defer c.Close()
//	err := c.Put(ctx, key, value)
//
// A [Client] implements kvdbsync.Store. It returns the results of the store behind
// the [Handler], including the errors that callers distinguish. The protocol is HTTP
// with JSON, so that curl can use it:
//
//	GET    /v1/stores                                      {"label": "vpp1", "stores": ["bolt", ...]}
//	GET    /v1/stores/{store}/keys?prefix=P[&keys_only=1]  a line for each key: {"key": "...", "value": "<base64>"}
//	GET    /v1/stores/{store}/key?key=K                    the value's bytes
//	PUT    /v1/stores/{store}/key?key=K                    the value's bytes as body
//	DELETE /v1/stores/{store}/key?key=K                    {"existed": true}
//	POST   /v1/stores/{store}/apply                        changes at once: [{"key": "...", "value": "<base64>"}, ...]
//	POST   /v1/stores/{store}/replace                      {"key": "...", "old": "<base64>", "value": "<base64>"}: {"stored": false} if the key does not hold old
//
// A short key, which does not begin with /vnf-agent/, is completed with the label of
// the agent. Prefixes are not completed.
//
// [Server].Beside serves all other paths on the same socket, and [Server].Calls serves gRPC.
//
// An error is {"error": text, "code": code}: 404 not_found or no_store, 405
// read_only, 400 bad_request, 413 too_large or too_large_at_once, 500 failed. If a listing fails halfway,
// the connection is closed, so that no client takes it for complete.
//
// Every process that can open the socket can change the network and read secrets. Only
// the agent's own user, root and the members of [Server].Group can open it.
//
//	file             | mode | of a group | held by                 | removed
//	directory        | 0700 | 0710       | the agent's user        | never
//	SOCKET           | 0600 | 0660       | the listening agent     | when Run ends
//	SOCKET.lock      | 0600 | 0600       | flock of the same agent | after the socket
//
// Tests: a real Bolt file behind a real socket.
package kvdb

import (
	"errors"
	"fmt"
)

// Errors that callers can test with errors.Is.
var (
	// ErrInUse reports that a running process listens on the socket.
	ErrInUse = errors.New("another agent listens there")
	// ErrNoAgent reports that no process listens on the socket.
	ErrNoAgent = errors.New("no agent listens there")
	// ErrNoStore reports that the agent has no store with this name.
	ErrNoStore = errors.New("no such store")
)

// MaxValue is the maximum size of a value in bytes.
const MaxValue = 64 << 20

// maxApply is the maximum size of the body of several changes at once, in bytes.
const maxApply = 64 << 20

// maxReplace is the maximum size of the body of a replacement, in bytes: two values in base64.
const maxReplace = 3 * MaxValue

// checkPath checks the length of the path. The kernel's own error (EINVAL) does not
// name the reason.
func checkPath(socket string) error {
	const most = 107 // unix(7): sun_path, without the final NUL
	if len(socket) > most {
		return fmt.Errorf("socket %s: path has %d bytes: expected at most %d", socket, len(socket), most)
	}
	return nil
}
