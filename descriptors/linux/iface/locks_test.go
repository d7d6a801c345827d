package iface

import (
	"testing"
	"testing/synctest"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

func endOf(name, peer string) pair {
	return pairOf(&interfaces.Interface{Name: name, Link: &interfaces.Interface_Veth{Veth: &interfaces.VethLink{PeerIfName: peer}}})
}

// A verb that hangs keeps only the other end of its pair waiting.
func TestPairsAreHeldOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p locks[pair]
		release := p.hold(endOf("a", "b"))
		p.hold(endOf("c", "d"))()
		p.hold(endOf("d", "c"))()
		held := false
		go func() {
			defer p.hold(endOf("b", "a"))()
			held = true
		}()
		synctest.Wait()
		if held {
			t.Error("both ends of a pair are held at once")
		}
		release()
		synctest.Wait()
		if !held || len(p.held) != 0 {
			t.Errorf("the other end was held: %v; held now: %d", held, len(p.held))
		}
	})
}
