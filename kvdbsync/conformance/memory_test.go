package conformance_test

import (
	"errors"
	"testing"

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
	}
}
