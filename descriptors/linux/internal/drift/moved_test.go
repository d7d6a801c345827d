package drift

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// The loss of a link is seen, by another event, long before the kernel's message that says how it has left is read. Until then
// nobody knows whether it was moved; and its namespace, of which nothing else is recorded, is watched.
func TestMessageOfALostLinkComesLate(t *testing.T) {
	for _, moved := range []bool{true, false} {
		watch(t, func(w *watching) {
			w.red.set(nil)
			w.red.events <- []kernel.Event{{What: link3(false)}}
			<-time.After(time.Second)
			synctest.Wait()
			w.expect(t, "link")
			answer := make(chan bool)
			go func() { answer <- w.MovedAway("link") }()
			<-time.After(time.Second)
			select {
			case w.red.events <- []kernel.Event{{Gone: true, What: link3(false), Moved: moved}}:
			case <-time.After(time.Minute):
				t.Fatal("the namespace is not watched any more")
			}
			if got := <-answer; got != moved {
				t.Errorf("moved: %v, want %v", got, moved)
			}
		})
	}
}

// The message does not come: the link counts as deleted, and its namespace is let go.
func TestNoMessageOfALostLink(t *testing.T) {
	watch(t, func(w *watching) {
		w.red.set(nil)
		w.red.events <- []kernel.Event{{What: link3(false)}}
		<-time.After(time.Second)
		begun := time.Now()
		if w.MovedAway("link") {
			t.Error("it was moved")
		}
		if took := time.Since(begun); took > mostLate {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		w.still(func() {
			if w.spaces[w.red.id] != nil {
				t.Error("its namespace is still watched")
			}
		})
	})
}
