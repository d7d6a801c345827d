package wake_test

import (
	"testing"

	"github.com/keyplane/keyplane/internal/wake"
)

func TestAGroupWakesAll(t *testing.T) {
	var g wake.Group
	a, b := g.Join(), g.Join()
	g.Set()
	<-a.C()
	<-b.C()
}

func TestSetTwiceWakesOnce(t *testing.T) {
	s := wake.New()
	s.Set()
	s.Set()
	<-s.C()
	select {
	case <-s.C():
		t.Error("the signal was still set after it was received")
	default:
	}
	s.Set()
	<-s.C()
}
