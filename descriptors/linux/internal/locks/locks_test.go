package locks

import (
	"testing"
	"testing/synctest"
)

// Whoever holds a lock keeps only those waiting that want the same one.
func TestLocksAreHeldOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Locks[string]
		release := p.Hold("a")
		p.Hold("c")()
		p.Hold("c")()
		held := false
		go func() {
			defer p.Hold("a")()
			held = true
		}()
		synctest.Wait()
		if held {
			t.Error("a lock is held twice at once")
		}
		release()
		synctest.Wait()
		if !held || len(p.held) != 0 {
			t.Errorf("it was held again: %v; held now: %d", held, len(p.held))
		}
	})
}
