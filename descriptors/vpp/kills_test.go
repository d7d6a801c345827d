package vpp_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

var kills = flag.Int("kills", 5, "how often TestKills kills VPP while values come, and how often while they go")

// everything is a configuration with values of all descriptors, of which some wait for others that
// nobody declares.
func everything(t *testing.T) []string {
	t.Helper()
	peer := []string{wireguardKey, wireguardLink, peerKey, peerValue(peerAt)}
	return alike(slices.Concat(network(), waiting(), tablesOfNAT(), peer, shownAt(t, "punt/README.md", 1)))
}

// alike returns values of which two VPPs show the same.
func alike(all []string) []string {
	for i := range all {
		// VPP calls loopbacks loop0, loop1 and so on in the order of their creation, which differs.
		all[i] = strings.ReplaceAll(all[i], "loop", "lan")
		// A table keeps its name for as long as it has users, but not over a restart of VPP.
		all[i] = strings.ReplaceAll(all[i], `,"label":"blue"`, "")
	}
	return all
}

// TestKills kills VPP at random messages: while values of all kinds come, and while they go in
// random order. Each time, VPP has exactly the declared values afterwards: the same as another
// VPP that is never killed, with an agent that has the same values.
func TestKills(t *testing.T) { draw.Each(t, kill) }

func kill(t *testing.T, seed uint64) {
	start := func() (*agent, *simulated.VPP) {
		vpp := simulated.Start(t, simulated.Newest())
		vpp.Watch()
		a := startAgentKnowing(t, vpp.Socket, quiet())
		awaitReady(t, a)
		return a, vpp
	}
	a, vpp := start()
	other, unharmed := start()
	k := killer{T: t, random: rand.New(rand.NewPCG(seed, 0)), a: a, vpp: vpp, other: other, unharmed: unharmed, declared: map[string]string{}}
	all := everything(t)
	unharmed.Counts()
	k.other.want(true, all...)
	for _, n := range unharmed.Counts() {
		k.messages += n
	}
	k.other.want(true)
	for n := range *kills {
		k.round = n
		k.come(all)
		k.leave()
	}
}

// A killer kills the VPP of one agent, and compares it with that of another one.
type killer struct {
	*testing.T
	random        *rand.Rand
	a, other      *agent
	vpp, unharmed *simulated.VPP
	messages      int // with which an agent applies everything
	round         int
	declared      map[string]string // values by key
}

// come declares everything, and kills VPP meanwhile or later.
func (k *killer) come(all []string) {
	k.Helper()
	for i := 0; i < len(all); i += 2 {
		k.declared[all[i]] = all[i+1]
	}
	k.other.want(true, all...)
	at, done := k.armed(k.messages)
	_, _ = k.a.declare(true, all...) // values that fail as VPP ends are restored later
	if k.random.IntN(2) == 0 {
		// It ends while it is restored after another end.
		k.restart()
	}
	k.stands(fmt.Sprintf("killed at message %d (executed: %v) while values come", at, done))
}

// leave removes all values in random order, a few at a time, and kills VPP meanwhile.
func (k *killer) leave() {
	k.Helper()
	keys := slices.Sorted(maps.Keys(k.declared))
	k.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	// Tables go last. VPP keeps a table that nobody declares while others use it, and the last
	// user takes it away from steering, which VPP cannot end then (see srv6.deleteSteering).
	isTable := func(key string) bool { return strings.Contains(key, "/vrf-table/") }
	slices.SortStableFunc(keys, func(a, b string) int {
		switch {
		case isTable(a) == isTable(b):
			return 0
		case isTable(b):
			return -1
		}
		return 1
	})
	at, done := k.armed(k.messages / 2)
	for len(keys) > 0 {
		n := 1 + k.random.IntN(min(len(keys), 8))
		var txn scheduler.Txn
		for _, key := range keys[:n] {
			txn.Changes = append(txn.Changes, scheduler.Unwant(key))
			delete(k.declared, key)
		}
		keys = keys[n:]
		_, _ = k.a.sched.Commit(k.Context(), txn) // verbs fail if VPP ends meanwhile
		if _, err := k.other.sched.Commit(k.Context(), txn); err != nil {
			k.Fatal(err)
		}
		if k.vpp.Revive() {
			k.stands(fmt.Sprintf("killed at message %d (executed: %v) while values go; %d remain", at, done, len(keys)))
		}
	}
	k.stands("without values")
}

// armed has VPP end at a random one of the next messages.
func (k *killer) armed(messages int) (at int, done bool) {
	at, done = 1+k.random.IntN(messages), k.random.IntN(2) == 0
	k.vpp.DieAt(at, done)
	return at, done
}

// restart starts VPP again, whether it has ended or not.
func (k *killer) restart() {
	k.Helper()
	if err := k.vpp.Restart(); err != nil {
		k.Fatal(err)
	}
	k.vpp.Revive() // an earlier end is no news any more
}

// stands waits until VPP has the same values as the other one. It starts VPP again if it ends.
func (k *killer) stands(after string) {
	k.Helper()
	difference := ""
	until(k.T, func() bool {
		k.vpp.Revive()
		difference = differences(k.values(k.a, k.vpp), k.values(k.other, k.unharmed))
		return difference == ""
	}, func() string { return fmt.Sprintf("round %d, %s:\n%s", k.round, after, difference) })
	k.vpp.DieAt(0, false)
}

// values returns all values in VPP by key, as the agent reads them back, with their states. Values
// of others are among them. With a simulated VPP, its pages follow.
func (k *killer) values(a *agent, vpp *simulated.VPP) map[string]string {
	k.Helper()
	out := map[string]string{}
	if _, err := a.sched.Commit(k.Context(), scheduler.Txn{Refresh: true}); err != nil {
		out["refresh"] = err.Error()
	}
	for _, st := range a.sched.Statuses("") {
		if isVPPsOwn(st) {
			continue
		}
		out[st.Key] = fmt.Sprint(st.State, " ", prototext.MarshalOptions{}.Format(st.Actual))
		if st.Err != nil {
			out[st.Key] += " " + st.Err.Error()
		}
	}
	if vpp.Sim != nil {
		out["pages"] = pages(vpp)
	}
	return out
}

// isVPPsOwn reports whether VPP makes a value by itself, depending on time or on the order of other
// values: neighbours that it learns, and the table in which SRv6 has its steering.
func isVPPsOwn(st *scheduler.Status) bool {
	if n, is := st.Actual.(*l3.ARPEntry); is {
		return st.State == scheduler.Obtained && !n.GetStatic()
	}
	return strings.HasPrefix(st.Key, "config/vpp/v2/vrf-table/id/4294967295/")
}

// differences lists the values that differ, line by line.
func differences(is, want map[string]string) string {
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if is[key] != want[key] {
			for _, line := range lists.Without(strings.Split(is[key], "\n"), strings.Split(want[key], "\n")) {
				fmt.Fprintf(&out, "%s has, unlike the VPP that was not killed: %s\n", key, line)
			}
			for _, line := range lists.Without(strings.Split(want[key], "\n"), strings.Split(is[key], "\n")) {
				fmt.Fprintf(&out, "%s lacks, unlike the VPP that was not killed: %s\n", key, line)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if _, ok := want[key]; !ok {
			fmt.Fprintf(&out, "%s is not in the VPP that was not killed, but here: %s\n", key, is[key])
		}
	}
	return out.String()
}
