package stores

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
)

// The agent itself is the server of a Bolt file. A kill or a cut is another program that
// has the file open.
const boltCan = Emptied | Copies | CutTaken | Groups | Garbage | Many | Children | SmallDisk | OwnFile

// connectBolt opens the file in the process that calls it. Only one process can have it
// open: see Store.Lend.
func connectBolt(config json.RawMessage) (kvdbsync.Connector, error) {
	var cfg bolt.Config
	if err := json.Unmarshal(config, &cfg); err != nil {
		return nil, err
	}
	return bolt.New(cfg)
}

// A boltStore writes through the agent's own DB. While another program has the file, it
// writes as that program.
type boltStore struct {
	testing.TB
	db   *bolt.DB
	cfg  bolt.Config
	raw  *bbolt.DB // set while another program has the file
	copy []byte
}

// openBolt makes the folder of the file, on a small disk if the fault fills it.
func openBolt(t testing.TB, extra Ability) *Store {
	dir := t.TempDir()
	if extra&SmallDisk != 0 {
		dir = smallDisk(t)
	}
	return newBoltStore(t, dir).store(dir)
}

// newBoltStore opens the agent's own DB in dir. The lock timeout is short, so the agent
// soon notices that another program has the file.
func newBoltStore(t testing.TB, dir string) *boltStore {
	cfg := bolt.Config{Path: filepath.Join(dir, "keys.db"), LockTimeout: 100 * time.Millisecond}
	db, err := bolt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &boltStore{TB: t, db: db, cfg: cfg}
	t.Cleanup(s.close)
	return s
}

// store returns the Store. Kill and Cut are the same here: the file is taken away.
func (s *boltStore) store(dir string) *Store {
	return &Store{
		Config: s.cfg, Connector: s.db, Dir: dir, Write: s.write, List: s.list,
		AtOnce: 1000, MaxValue: models.MaxSize, MaxName: 3 << 10,
		Kill: s.take, Wipe: s.wipe, Start: s.give,
		Cut: func(string) { s.take() }, Heal: s.give, Save: s.save, Restore: s.restore,
		Lend: s.close, Damage: s.damage, Mend: s.mend,
	}
}

// write makes all changes in one bbolt transaction, which is why the kind has Groups.
func (s *boltStore) write(ctx context.Context, changes ...history.Change) error {
	pairs := PairsOf(changes)
	if s.raw == nil {
		return s.db.Apply(ctx, pairs)
	}
	return s.raw.Update(func(tx *bbolt.Tx) error { return putRaw(tx, pairs) })
}

// putRaw writes into the bucket of the agent's DB without any code of connectors/bolt.
func putRaw(tx *bbolt.Tx, pairs []kvdbsync.Pair) error {
	b, err := tx.CreateBucketIfNotExists([]byte("root"))
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if p.Value == nil {
			err = b.Delete([]byte(p.Key))
		} else {
			err = b.Put([]byte(p.Key), p.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list reads through the agent's DB. It is not called while another program has the file.
func (s *boltStore) list(ctx context.Context) (map[string]string, error) {
	pairs, err := s.db.List(ctx, Root)
	return textsOf(pairs), err
}

// close closes the agent's DB. The connector opens it again at its next use.
func (s *boltStore) close() {
	s.Helper()
	if err := s.db.Close(); err != nil {
		s.Fatal(err)
	}
}

// take gives the file to another program. The agent tries to get it back.
func (s *boltStore) take() {
	s.Helper()
	for s.raw == nil {
		s.close()
		// The agent may have opened the file again first; then the loop closes it once
		// more.
		s.raw, _ = bbolt.Open(s.cfg.Path, 0o600, &bbolt.Options{Timeout: time.Millisecond})
	}
}

// give returns the file to the agent. It must be called exactly once after take.
func (s *boltStore) give() {
	s.Helper()
	raw := s.raw
	s.raw = nil
	if err := raw.Close(); err != nil {
		s.Fatal(err)
	}
}

// wipe needs the file to be taken. It makes the new file beside the old one, so the lock
// on the old file keeps the agent out until then.
func (s *boltStore) wipe() { s.replace(nil) }

// save copies the file while the agent is locked out, so the copy is a consistent one.
func (s *boltStore) save() {
	s.Helper()
	s.take()
	defer s.give()
	var err error
	s.copy, err = os.ReadFile(s.cfg.Path)
	if err != nil {
		s.Fatal(err)
	}
}

// restore works both while the file is taken and while the agent has it.
func (s *boltStore) restore() {
	s.Helper()
	taken := s.raw != nil
	s.take()
	s.replace(s.copy)
	if !taken {
		s.give()
	}
}

// replace replaces the taken file by another one, and takes that.
func (s *boltStore) replace(content []byte) {
	s.Helper()
	beside := s.cfg.Path + ".new"
	if err := os.WriteFile(beside, content, 0o600); err != nil {
		s.Fatal(err)
	}
	next, err := bbolt.Open(beside, 0o600, nil)
	if err == nil {
		err = os.Rename(beside, s.cfg.Path)
	}
	if err == nil {
		err = s.raw.Close()
	}
	if err != nil {
		s.Fatal(err)
	}
	s.raw = next
}

// damage overwrites the file while the agent has it open.
func (s *boltStore) damage(how string) {
	s.Helper()
	f, err := os.OpenFile(s.cfg.Path, os.O_WRONLY, 0)
	if err != nil {
		s.Fatal(err)
	}
	info, err := f.Stat()
	if err == nil {
		size := info.Size()
		switch how {
		case "emptied":
			err = f.Truncate(0)
		// The first meta page stays, and pages that it refers to are lost.
		case "cut":
			err = f.Truncate(size / 4)
		// No page header is valid then.
		case "scribbled":
			_, err = f.Write(bytes.Repeat([]byte{0xa5}, int(size)))
		}
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		s.Fatal(err)
	}
}

// mend renames the copy to the file's path.
func (s *boltStore) mend() {
	s.Helper()
	err := os.WriteFile(s.cfg.Path+".good", s.copy, 0o600)
	if err == nil {
		err = os.Rename(s.cfg.Path+".good", s.cfg.Path)
	}
	if err != nil {
		s.Fatal(err)
	}
}
