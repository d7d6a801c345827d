package ownership

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/vppwire"
)

const (
	instA = "aaaaaaaaaaaaaaaa"
	instB = "bbbbbbbbbbbbbbbb"
)

func TestTags(t *testing.T) {
	long := strings.Repeat("n", 63)
	for _, label := range []string{"vpp1", "a.b@c", strings.Repeat("label", 20)} {
		a := New(Options{Label: label, Installation: instA})
		for _, name := range []string{"a", "a@b.c", "@", "x/y z", long[:60], long, long[:62] + "m", strings.Repeat("é", 40), "n" + strings.Repeat("é", 40)} {
			tag := a.Tag(name)
			if len(tag) > Longest || !strings.Contains(tag, instA) {
				t.Errorf("%s: tag %q has %d bytes", name, tag, len(tag))
			}
			if got := a.Name(tag); got != name || a.Foreign(got) || a.Older(got) {
				t.Errorf("%s: read as %q", name, got)
			}
			again := New(Options{Label: label, Installation: instA}) // which has not written it
			again.Expect(name)
			if got := again.Name(tag); got != name {
				t.Errorf("%s: read after a restart as %q", name, got)
			}
			if got := again.Name(vppwire.Text(tag)); got != name {
				t.Errorf("%s: read from a message as %q", name, got)
			}
			other := New(Options{Label: label + "x", Installation: instB})
			if got := other.Name(tag); got != tag || !other.Foreign(got) {
				t.Errorf("%s: of another label: %q", name, got)
			}
			if got := other.Tag(name); got == tag {
				t.Errorf("%s: two agents have the tag %q", name, tag)
			}
		}
	}
	if a, b := New(Options{Label: "vpp1", Installation: instA}), New(Options{Label: "vpp1", Installation: instB}); a.Tag(long) == a.Tag(long[:62]+"m") || a.Tag("x") == b.Tag("x") {
		t.Error("two names, or two installations, have one tag")
	}
}

func TestTagsOfEarlierAgents(t *testing.T) {
	dead := New(Options{Label: "vpp1", Installation: instA}).Tag("a")
	lives := false
	b := New(Options{Label: "vpp1", Installation: instB, Alive: func(id string) bool { return lives && id == instA }})
	if got := b.Name(dead); got != "a" || !b.Older(got) || b.Unsigned(got) || b.Foreign(got) {
		t.Errorf("of an installation that does not live: %q", got)
	}
	b.Tag("a")
	if b.Older("a") {
		t.Error("a tag that was written again is not older")
	}
	lives = true
	if got := b.Name(dead); got != dead || !b.Foreign(got) {
		t.Errorf("of an installation that lives: %q", got)
	}
	for _, bare := range []string{"a", "vpp1.x@a", "vpp1." + instA, "." + instA + "@a", "a@b"} {
		if got := b.Name(bare); got != bare || !b.Unsigned(got) || b.Foreign(got) {
			t.Errorf("%q, which says nothing of an owner: %q", bare, got)
		}
	}
	var none *Owner
	if none.Tag("a") != "a" || none.Name(dead) != dead || none.Foreign(dead) || none.Older("a") || none.Tag("") != "" {
		t.Error("without a label tags are names")
	}
	none.Expect("a")
}

// An agent with our label runs, and is down later. What it has made stays its own if that was learned, and not only seen.
func TestTagsOfAgentThatEnds(t *testing.T) {
	theirs := New(Options{Label: "vpp1", Installation: instA}).Tag("a")
	for _, learned := range []bool{false, true} {
		lives := true
		b := New(Options{Label: "vpp1", Installation: instB, Alive: func(id string) bool { return lives && id == instA }})
		if name := b.Name(theirs); learned {
			b.Learn(name)
		}
		lives = false
		if name := b.Name(theirs); b.Foreign(name) != learned || b.Older(name) == learned {
			t.Errorf("learned %t: %q is foreign %t, older %t", learned, name, b.Foreign(name), b.Older(name))
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("vpp1." + instA + "@a")
	f.Add("@.")
	f.Fuzz(func(t *testing.T, tag string) {
		w := New(Options{Label: "vpp1", Installation: instA})
		if name := w.Name(tag); len(name) > len(tag) {
			t.Errorf("%q: %q", tag, name)
		}
	})
}

// What looks like the sign of an agent, or like the name of what nobody has named, is no name.
func TestWrongName(t *testing.T) {
	for name, wrong := range map[string]bool{
		"vpp1." + instA + "@a": true, "other." + instA + "@": true, "UNTAGGED-loop0": true, "UNTAGGED-": true,
		"a": false, "a@b": false, "a.b@c": false, "." + instA + "@a": false, "untagged-a": false, "vpp1." + instA: false,
	} {
		if got := WrongName(name); (got != "") != wrong {
			t.Errorf("%q: %q", name, got)
		}
	}
	// Such a name would come back as that of another agent.
	w := New(Options{Label: "vpp1", Installation: instA})
	if name := w.Name(w.Tag("other." + instA + "@x")); !w.Foreign(name) {
		t.Errorf("%q is not foreign", name)
	}
}
