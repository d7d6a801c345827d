// Package kvdb lets people edit the agent's stores by hand, over a socket of the
// agent's own.
//
//	s := kvdb.Server{Socket: path, Stores: map[string]kvdbsync.Store{"bolt": db}}
//	err := s.Run(ctx)
//
//	c := kvdb.NewClient(path, "bolt")
//	defer c.Close()
//	err := c.Put(ctx, key, value)
//
// A [Client] is a kvdbsync.Store like those behind the [Handler]: what they return,
// it returns, errors that callers tell apart included. The wire is HTTP with JSON, so
// that curl can do it too:
//
//	GET    /v1/stores                                      {"label": "vpp1", "stores": ["bolt", ...]}
//	GET    /v1/stores/{store}/keys?prefix=P[&keys_only=1]  a line for each key: {"key": "...", "value": "<base64>"}
//	GET    /v1/stores/{store}/key?key=K                    the value's bytes
//	PUT    /v1/stores/{store}/key?key=K                    the value's bytes as body
//	DELETE /v1/stores/{store}/key?key=K                    {"existed": true}
//
// A short key, which does not begin with /vnf-agent/, is completed with the label of the
// agent. A prefix is taken as it comes.
//
// What else the agent answers may be served beside: [Server].Beside.
//
// An error is {"error": text, "code": code}: 404 not_found or no_store, 405
// read_only, 400 bad_request, 413 too_large, 500 failed. A listing that ends
// before its time breaks the connection, so it is never taken for a short one.
//
// Whoever may open the socket may change the network. It is made for its owner
// alone, and root. Tests: a real Bolt file behind a real socket.
package kvdb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Errors that callers tell apart.
var (
	// ErrInUse says that a living process listens on the socket.
	ErrInUse = errors.New("another agent listens there")
	// ErrNoAgent says that nobody listens on the socket.
	ErrNoAgent = errors.New("no agent listens there")
	// ErrNoStore says that the agent has no store of that name.
	ErrNoStore = errors.New("no such store")
)

// MaxValue is the most bytes a value may have.
const MaxValue = 64 << 20

// DefaultSocket is where the agent of a label listens if nothing else is said:
// below /run/keyplane for root, else below $XDG_RUNTIME_DIR/keyplane, or where there is
// no such directory, in one of the user's own below that for temporary files. Server.Listen
// checks that other users cannot write there.
func DefaultSocket(label string) string {
	dir := "/run/keyplane"
	if uid := os.Geteuid(); uid != 0 {
		dir = filepath.Join(os.TempDir(), "keyplane-"+strconv.Itoa(uid))
		if own := os.Getenv("XDG_RUNTIME_DIR"); own != "" {
			dir = filepath.Join(own, "keyplane")
		}
	}
	return filepath.Join(dir, label+".sock")
}

// checkPath refuses what the kernel would, in words.
func checkPath(socket string) error {
	const most = 107 // unix(7): sun_path, without the final NUL
	if len(socket) > most {
		return fmt.Errorf("socket %s: path has %d bytes: expected at most %d", socket, len(socket), most)
	}
	return nil
}
