package iptables

import (
	"iter"
	"slices"
	"testing"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/iptables"
)

// After Retrieve, the record has no chain that is neither there nor declared: it would make each
// change of rules a reason to read them all. A declared one stays recorded, since the record
// knows the policy before the agent's.
func TestRetrieveForgetsWhatIsGone(t *testing.T) {
	withVariant(t, "nft")
	h := inRed(t)
	declared := chainIn(t, `name: "declared" chain_type: INPUT default_policy: DROP`)
	leftover := chainIn(t, `name: "leftover" chain_type: FORWARD rules: "-j DROP"`)
	keyOf := func(v *iptables.RuleChain) string { return models.For[*iptables.RuleChain]().KeyOf(v.GetName()) }
	for _, v := range []*iptables.RuleChain{declared, leftover} {
		if _, err := h.create(t.Context(), keyOf(v), v); err != nil {
			t.Fatal(err)
		}
	}
	recorded := func() (keys []string) {
		for key := range h.watcher.recorded(h.space.ID) {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		return keys
	}
	retrieve := func(wanted ...desired) {
		t.Helper()
		learn(t, h.retrieve(t.Context(), wanted))
	}
	wanted := desired{Key: keyOf(declared), Value: declared}
	retrieve(wanted)
	if got, want := recorded(), []string{keyOf(declared), keyOf(leftover)}; !slices.Equal(got, want) {
		t.Errorf("recorded are %q, want %q", got, want)
	}
	h.do("iptables -F")
	h.do("iptables -X")
	retrieve(wanted)
	if got, want := recorded(), []string{keyOf(declared)}; !slices.Equal(got, want) {
		t.Errorf("recorded are %q, want %q", got, want)
	}
	if was := h.watcher.was(h.space.ID, keyOf(declared)); was != "ACCEPT" {
		t.Errorf("the policy before is %q", was)
	}
	retrieve()
	if got := recorded(); len(got) > 0 {
		t.Errorf("recorded are %q, want none", got)
	}
}

// The agent is announced in a namespace for as long as it has a chain there, also if it has
// nothing else there, and after a restart.
func TestChainsAreAnnounced(t *testing.T) {
	withVariant(t, "nft")
	const installation = "0123456789abcdef"
	h := inRed(t)
	h.handler = handlerOf(h.Spaces, "vpp1", installation)
	v := chainIn(t, `name: "c" chain_type: INPUT rules: "-j DROP"`)
	key := models.For[*iptables.RuleChain]().KeyOf("c")
	expect := func(when string, announced bool) {
		t.Helper()
		if got := h.space.Announced(installation); got != announced {
			t.Errorf("%s: announced is %v", when, got)
		}
	}
	meta, err := h.create(t.Context(), key, v)
	if err != nil {
		t.Fatal(err)
	}
	expect("after Create", true)
	h.watcher.forget(h.space.ID, key) // as if the agent ended
	expect("without the agent", false)
	learn(t, h.retrieve(t.Context(), []desired{{Key: key, Value: v}}))
	expect("after Retrieve", true)
	if err := h.delete(t.Context(), key, v, meta); err != nil {
		t.Fatal(err)
	}
	expect("after Delete", false)
}

// learn reads as the scheduler does that takes the result as what is there.
func learn(t *testing.T, all iter.Seq2[found, error]) {
	t.Helper()
	for f, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		if f.Learned != nil {
			f.Learned()
		}
	}
}
