package unreported

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

// Each state of a note is seen by the agent that makes it, and by the next one.
func TestStatesOfNotes(t *testing.T) {
	run := "first"
	var late func([]byte)
	memory := testkit.Memory{"of another/a": []byte("x")}
	for _, c := range []struct {
		name     string
		do       func(n *Notes)
		state    State
		of       string
		inMemory int
	}{
		{"nothing was set", func(*Notes) {}, None, "", 0},
		{"begun", func(n *Notes) { n.Begin("a") }, Unknown, "", 1},
		{"set", func(n *Notes) { n.Begin("a")([]byte("1")) }, Known, "1", 1},
		{"set to nothing", func(n *Notes) { n.Begin("a")(nil) }, Known, "", 1},
		{"set again", func(n *Notes) { n.Begin("a")([]byte("2")) }, Known, "2", 1},
		{"begun in this run", func(n *Notes) { late = n.Begin("a") }, Unknown, "", 1},
		{"VPP is restarted before the answer counts", func(*Notes) { run = "second"; late([]byte("3")) }, Unknown, "", 1},
		{"the agent is back at the first run", func(*Notes) { run = "first" }, Known, "3", 1},
		{"forgotten", func(n *Notes) { n.Forget("a") }, None, "", 0},
		{"forgotten twice", func(n *Notes) { n.Forget("a") }, None, "", 0},
	} {
		o := Options{Prefix: "mine/", Memory: memory, Run: func() string { return run }}
		n := New(o)
		c.do(n)
		for _, n := range []*Notes{n, New(o)} {
			setting, state := n.Of("a")
			if string(setting) != c.of || state != c.state {
				t.Errorf("%s: the setting is %q in state %d; expected %q in state %d", c.name, setting, state, c.of, c.state)
			}
		}
		if len(memory) != 1+c.inMemory {
			t.Errorf("%s: the memory has %q", c.name, memory)
		}
	}
}

// An agent that knew no runs has noted that something was set, but not in which run.
func TestNotesOfAnOlderAgent(t *testing.T) {
	n := New(Options{Prefix: "mine/", Memory: testkit.Memory{"mine/a": []byte("set")}})
	if setting, state := n.Of("a"); state != Unknown || !slices.Equal(n.Names(), []string{"a"}) {
		t.Errorf("the setting is %q in state %d, of %q", setting, state, n.Names())
	}
}
