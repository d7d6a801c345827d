package redis_test

import (
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

const root = "/vnf-agent/vpp1/"

func follow(t *testing.T, c kvdbsync.Connector) *conformance.Mirror {
	t.Helper()
	return conformance.Follow(t, c, root)
}

// watched is a Watch that has listed, read batch by batch.
type watched struct {
	t    *testing.T
	next func() (kvdbsync.Batch, error, bool)
}

func (w watched) read() kvdbsync.Batch {
	w.t.Helper()
	b, err, ok := w.next()
	if err != nil || !ok {
		w.t.Fatalf("the watch ended: %v", err)
	}
	return b
}
