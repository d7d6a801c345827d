package siege

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/session"
)

// A soak is one agent that follows an etcd and programs a simulated VPP for a long time. Its
// keys change at random. The line to the store is cut, and VPP and the agent are killed.
type soak struct {
	*target
	net  *soakNetwork
	line *testkit.Proxy // from the agent to the store

	random *rand.Rand // of the goroutine that harms
	begun  time.Time

	life       atomic.Int64 // number of the agent's process, from 1
	cuts, vpps atomic.Int64 // so far
	samples    []sample     // of the goroutine that samples
}

// The agent is killed after these parts of a soak, so its last life is as long as the others
// together.
var soakKills = []float64{1. / 6, 2. / 6, 3. / 6}

// One agent stands the faults of a long life: no value is lost, and it needs no more with time.
func TestSoak(t *testing.T) {
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	program := session.Build(t, "../../cmd/agent") + "/agent"
	t.Parallel()
	s := startSoak(t, program)
	within(t, "before the faults", s.target, s.net.settles)
	s.begun = time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), *opts.soak)
	defer cancel()
	err := together(
		func() error { return s.net.edit(ctx) },
		func() error { return s.harm(ctx) },
		func() error { return s.sample(ctx) },
	)
	if err != nil {
		t.Error(err)
	}
	s.line.Set(testkit.Pass)
	within(t, "after the faults", s.target, s.net.settles)
	s.report(t)
	s.stop()
}

// startSoak declares all keys and starts the agent.
func startSoak(t *testing.T, program string) *soak {
	t.Helper()
	store := testkit.StartEtcd(t, testkit.EtcdOptions{Args: []string{"--auto-compaction-mode=periodic", "--auto-compaction-retention=10m"}})
	dir := t.TempDir()
	s := &soak{
		line: testkit.StartProxy(t, store.Addr), random: rand.New(rand.NewPCG(1, 0)),
		target: &target{vpp: startVPP(t, filepath.Join(dir, "api.sock")), struck: func() {}},
	}
	s.net = newSoakNetwork(t, store, "soak", filepath.Join(dir, "api.sock"))
	s.agent = startAgent(t, program, "soak", map[string]string{
		"etcd.conf":  "endpoints: [" + s.line.Addr + "]\noperation-timeout: 5s\n",
		"govpp.conf": "binapi-socket-path: " + filepath.Join(dir, "api.sock") + "\n",
		// The history fills soon, so that its growth is not taken for a leak.
		"kvscheduler.conf":  "history-bytes: 8388608\n",
		"orchestrator.conf": "publish-status: []\n",
	})
	s.life.Store(1)
	return s
}

// harm cuts the line, kills VPP and kills the agent in turn until ctx ends. From time to time
// it lets the network settle, and compares it with what is declared.
func (s *soak) harm(ctx context.Context) error {
	period := min(max(*opts.soak/120, 2*time.Second), 30*time.Second)
	for n := 0; ; n++ {
		pause(ctx, period)
		if ctx.Err() != nil {
			return nil
		}
		if !s.running() {
			return fmt.Errorf("%w: %v", errEnded, s.cmd.ProcessState)
		}
		err := s.harmOnce(ctx, n)
		if err == nil && n%10 == 9 {
			err = s.compare(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// harmOnce is one fault, which has ended when it returns.
func (s *soak) harmOnce(ctx context.Context, n int) error {
	if kills := int(s.life.Load()) - 1; kills < len(soakKills) && time.Since(s.begun).Seconds() > soakKills[kills]*opts.soak.Seconds() {
		return s.killAgent(ctx)
	}
	long := time.Duration(s.random.Int64N(int64(3 * time.Second)))
	if n%3 == 0 {
		s.vpps.Add(1)
		s.vpp.Kill()
		pause(ctx, long)
		return s.vpp.Start()
	}
	s.cuts.Add(1)
	modes := []testkit.Mode{testkit.Drop, testkit.Reset, testkit.BlackHole}
	s.line.Set(modes[s.random.IntN(len(modes))])
	pause(ctx, long)
	s.line.Set(testkit.Pass)
	return nil
}

// killAgent kills the agent among edits, and starts it again. What it had applied before is
// compared first, and what it applies from its state and the store afterwards.
func (s *soak) killAgent(ctx context.Context) error {
	if err := s.compare(ctx); err != nil {
		return err
	}
	pause(ctx, time.Duration(s.random.Int64N(int64(time.Second))))
	s.kill()
	if err := s.start(); err != nil {
		return err
	}
	s.life.Add(1)
	return s.compare(ctx)
}

// compare stops the edits until VPP has what is declared.
func (s *soak) compare(ctx context.Context) error {
	s.net.editing.Lock()
	defer s.net.editing.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), testkit.Patience)
	defer cancel()
	if err := s.net.settles(ctx); err != nil {
		sources, _ := s.read(context.WithoutCancel(ctx), "/sources") // an explanation, if there is one
		s.Logf("the agent's own account:\n%s", sources)
		return fmt.Errorf("in life %d, %v after the start: %w", s.life.Load(), time.Since(s.begun).Round(time.Second), err)
	}
	return nil
}

// report writes the samples and judges them.
func (s *soak) report(t *testing.T) {
	t.Helper()
	t.Logf("%d keys, %d edits; %d cuts of the line, %d kills of VPP, %d of the agent; compared %d times, nothing was lost",
		*opts.soakKeys, s.net.edits, s.cuts.Load(), s.vpps.Load(), s.life.Load()-1, s.net.compared)
	if *opts.soakCSV != "" {
		if err := writeSamples(*opts.soakCSV, s.samples); err != nil {
			t.Error(err)
		}
	}
	verdicts := judge(s.samples)
	for _, v := range verdicts {
		t.Log(v)
		if !v.flat() {
			t.Errorf("not flat: %v", v)
		}
	}
	if len(verdicts) == 0 {
		t.Logf("no life had %v: too short to judge", shortestLife)
		if *opts.soak >= 3*shortestLife {
			t.Error(errors.New("a long soak was not judged"))
		}
	}
}
