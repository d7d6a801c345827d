package bolt_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Harness {
		db, path := open(t, bolt.Config{LockTimeout: testkit.Patience})
		s := &store{t: t, db: db, path: path}
		return conformance.Harness{
			Connector: db, Put: s.put, Delete: s.delete, Txn: s.txn, Cut: s.cut,
			Writer: db, Refused: kvdbsync.Pair{Key: strings.Repeat("k", bbolt.MaxKeySize+1), Value: []byte("x")},
			Publisher: db, Get: s.get, TTL: 10 * time.Millisecond, // which does not count
		}
	})
}

// A store is written through its DB, and while it is cut, by another program.
type store struct {
	t    *testing.T
	db   *bolt.DB
	path string
	raw  *bbolt.DB // set while cut
}

func (s *store) put(key string, value []byte) {
	if s.raw != nil {
		change(s.t, s.raw, key, value)
	} else if err := s.db.Put(s.t.Context(), key, value); err != nil {
		s.t.Error(err)
	}
}

func (s *store) delete(key string) {
	if s.raw != nil {
		change(s.t, s.raw, key, nil)
	} else if _, err := s.db.Delete(s.t.Context(), key); err != nil {
		s.t.Error(err)
	}
}

func (s *store) get(key string) []byte {
	value, err := s.db.Get(s.t.Context(), key)
	if err != nil && !errors.Is(err, kvdbsync.ErrNotFound) {
		s.t.Error(err)
	}
	return value
}

func (s *store) txn(events []kvdbsync.Event) {
	var pairs []kvdbsync.Pair
	for _, e := range events {
		pairs = append(pairs, kvdbsync.Pair{Key: e.Key, Value: e.Value})
	}
	if err := s.db.Apply(s.t.Context(), pairs); err != nil {
		s.t.Error(err)
	}
}

// cut lets another program have the file. Whoever watches tries to get it back at once.
func (s *store) cut(during func()) {
	for s.raw == nil {
		if err := s.db.Close(); err != nil {
			s.t.Fatal(err)
		}
		s.raw, _ = bbolt.Open(s.path, 0o600, &bbolt.Options{Timeout: time.Millisecond})
	}
	during()
	raw := s.raw
	s.raw = nil
	if err := raw.Close(); err != nil {
		s.t.Fatal(err)
	}
}
