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
		has      bool
		of       string
		isKnown  bool
		inMemory int
	}{
		{"nothing was set", func(*Notes) {}, false, "", false, 0},
		{"begun", func(n *Notes) { n.Begin("a") }, true, "", false, 1},
		{"set", func(n *Notes) { n.Begin("a")([]byte("1")) }, true, "1", true, 1},
		{"set to nothing", func(n *Notes) { n.Begin("a")(nil) }, true, "", true, 1},
		{"set again", func(n *Notes) { n.Begin("a")([]byte("2")) }, true, "2", true, 1},
		{"begun in this run", func(n *Notes) { late = n.Begin("a") }, true, "", false, 1},
		{"VPP is restarted before the answer counts", func(*Notes) { run = "second"; late([]byte("3")) }, true, "", false, 1},
		{"the agent is back at the first run", func(*Notes) { run = "first" }, true, "3", true, 1},
		{"forgotten", func(n *Notes) { n.Forget("a") }, false, "", false, 0},
		{"forgotten twice", func(n *Notes) { n.Forget("a") }, false, "", false, 0},
	} {
		o := Options{Prefix: "mine/", Memory: memory, Run: func() string { return run }}
		n := New(o)
		c.do(n)
		for _, n := range []*Notes{n, New(o)} {
			setting, known := n.Of("a")
			if string(setting) != c.of || known != c.isKnown || n.Has("a") != c.has {
				t.Errorf("%s: the setting is %q, known %t, noted %t; expected %q, %t, %t", c.name, setting, known, n.Has("a"), c.of, c.isKnown, c.has)
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
	if setting, known := n.Of("a"); known || !n.Has("a") || !slices.Equal(n.Names(), []string{"a"}) {
		t.Errorf("the setting is %q, known %t, of %q", setting, known, n.Names())
	}
}
