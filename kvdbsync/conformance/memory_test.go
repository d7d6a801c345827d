package conformance_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

func TestMemoryConforms(t *testing.T) { conformance.Run(t, memoryHarness) }

func memoryHarness(*testing.T) conformance.Harness {
	m := new(conformance.Memory)
	return conformance.Harness{
		Connector: m,
		Put:       func(key string, value []byte) { m.Txn(kvdbsync.Event{Key: key, Value: value}) },
		Delete:    func(key string) { m.Txn(kvdbsync.Event{Key: key}) },
		Txn:       func(events []kvdbsync.Event) { m.Txn(events...) },
		Cut: func(during func()) {
			m.Fail(errors.New("cut"))
			during()
			m.Fail(nil)
		},
		Writer:    m,
		Refused:   kvdbsync.Pair{Key: "", Value: []byte("x")},
		Publisher: m,
		Get:       func(key string) []byte { v, _ := m.Get(context.Background(), key); return v },
		TTL:       50 * time.Millisecond,
		Sever:     m.Sever,
		Revoke:    m.Revoke,
	}
}
