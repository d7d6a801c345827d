package memory

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// Pause is how long Run waits before it writes: what is saved is seldom all, and a start has
// better things to do.
const Pause = time.Second

// longest is how long it rests when that fails again and again.
const longest = time.Minute

// atOnce is how many keys one transaction of the file writes.
const atOnce = 10_000

// pending is what is not written yet: the newest of each key.
type pending struct {
	ready chan struct{} // holds a token while there is something

	mu  sync.Mutex // guards all
	all map[string][]byte
}

func newPending() pending {
	return pending{ready: make(chan struct{}, 1), all: map[string][]byte{}}
}

func (p *pending) add(changes map[string][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) == 0 && changes != nil {
		p.all = changes
	} else {
		maps.Copy(p.all, changes)
	}
	p.signal()
}

// giveBack returns what could not be written, unless it has become something else.
func (p *pending) giveBack(keys []string, from map[string][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		if _, newer := p.all[key]; !newer {
			p.all[key] = from[key]
		}
	}
	p.signal()
}

func (p *pending) take() map[string][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = map[string][]byte{}
	return all
}

func (p *pending) signal() {
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// Run writes behind what is saved, until ctx ends.
func (f *File) Run(ctx context.Context) error {
	rest := Pause
	for {
		select {
		case <-f.news.ready:
		case <-ctx.Done():
			return nil
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return nil
		}
		rest = f.attempt(rest)
	}
}

// attempt writes, and returns how long to rest then. Only the first failure, and
// the end of failing, are told.
func (f *File) attempt(rest time.Duration) time.Duration {
	err := f.write()
	failing := rest > Pause
	switch {
	case err == nil && failing:
		f.log.Info("memory is written again")
		return Pause
	case err == nil:
		return Pause
	case !failing:
		f.log.Error("memory cannot be written, and is tried again; nothing else is affected", "err", err)
	}
	return min(2*rest, longest)
}

// write writes what is pending. What it does not get to stays pending.
func (f *File) write() error {
	all := f.news.take()
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), f.refuses)
	for chunk := range slices.Chunk(keys, atOnce) {
		if err := f.writeSome(chunk, all); err != nil {
			f.news.giveBack(keys, all)
			return err
		}
	}
	return nil
}

// refuses says, and tells, that key is none for the file, which would else refuse
// all that is written with it.
func (f *File) refuses(key string) bool {
	fits := key != "" && len(key) <= bbolt.MaxKeySize
	if !fits {
		f.log.Warn("value is not remembered: its key is none for the file", "bytes", len(key), "most", bbolt.MaxKeySize, "key", key[:min(len(key), 100)])
	}
	return !fits
}

func (f *File) writeSome(keys []string, from map[string][]byte) error {
	return guarded(func() error {
		return f.db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(bucket)
			for _, key := range keys {
				if err != nil {
					return err
				}
				if value := from[key]; value != nil {
					err = b.Put([]byte(key), value)
				} else {
					err = b.Delete([]byte(key))
				}
			}
			return err
		})
	})
}
