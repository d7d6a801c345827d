package siege

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/session"
)

func TestSiege(t *testing.T) {
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	program := session.Build(t, "../../cmd/agent") + "/agent"
	for _, field := range []struct {
		name    string
		start   func(testing.TB, string) (*target, *referee)
		attacks []attack
	}{
		{"stores", startStores, attacksOnStores()},
		{"servers", startServers, attacksByServers()},
	} {
		t.Run(field.name, func(t *testing.T) {
			fronts := chosen(t, field.attacks)
			if len(fronts) == 0 {
				t.Skip("no attack was chosen")
			}
			t.Parallel()
			target, referee := field.start(t, program)
			besiege(t, target, referee, fronts)
		})
	}
}

// besiege attacks a target for a time, and judges how its agent has stood that.
func besiege(t *testing.T, target *target, referee *referee, fronts []*front) {
	t.Helper()
	within(t, "before the attacks", target, referee.declareAll)
	control := calm(t, referee, min(*opts.length/4, time.Minute))
	within(t, "before the attacks", target, referee.awaitQuiet)
	attacked, stop := last(t.Context(), *opts.length, fronts)
	defer stop()
	target.struck = func() {}
	var fifths []Seen // of the time, but the last
	err := together(
		func() error { return referee.run(attacked) },
		func() (err error) { fifths, err = followed(attacked, referee); return err },
		func() error { return wage(attacked, target, fronts) },
		func() error { return guard(attacked, target) },
	)
	if err != nil {
		t.Error(err)
	}
	within(t, "after the attacks", target, referee.awaitQuiet)
	within(t, "leaving", target, target.leave)
	within(t, "without the attackers", target, referee.awaitQuiet)
	report(t, target, referee, fronts, control, fifths)
	target.stop()
}

// calm changes good values while nobody attacks, and returns the p99 of that: the attacks are judged by what they add.
func calm(t *testing.T, referee *referee, length time.Duration) time.Duration {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	if err := referee.run(ctx); err != nil {
		t.Fatal(err)
	}
	took := seenBy(t, referee).Took
	t.Logf("without attacks: %s", took)
	return took.p99()
}

// followed returns what was seen in each fifth of the attacks but the last: an agent that gets slower shows it.
func followed(ctx context.Context, referee *referee) (fifths []Seen, err error) {
	for range 4 {
		select {
		case <-ctx.Done():
			return fifths, nil
		case <-time.After(*opts.length / 5):
		}
		seen, err := referee.seen(context.WithoutCancel(ctx))
		if err != nil {
			return fifths, err
		}
		fifths = append(fifths, seen)
	}
	return fifths, nil
}

func seenBy(t *testing.T, referee *referee) Seen {
	t.Helper()
	v, err := referee.seen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// within does something that must succeed while the agent runs.
func within(t *testing.T, when string, target *target, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	go func() {
		select {
		case <-target.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := do(ctx); err != nil {
		if late, ok := errors.AsType[*UnsettledError](err); ok {
			t.Logf("the agent's own account:\n%s", target.account(t.Context(), late.Name))
		}
		t.Fatalf("%s, within %v: %v (the agent runs: %v)", when, testkit.Patience, err, target.running())
	}
}

// errEnded says that the attacks won.
var errEnded = errors.New("the agent ended under attack")

// guard returns an error if the agent ends before ctx does.
func guard(ctx context.Context, target *target) error {
	select {
	case <-ctx.Done():
		return nil
	case <-target.ended:
		return fmt.Errorf("%w: %v", errEnded, target.cmd.ProcessState)
	}
}

// report says what the siege has done, and whether the agent stood it. The control is the p99 without attacks; fifths are what was
// seen before.
func report(t *testing.T, target *target, referee *referee, fronts []*front, control time.Duration, fifths []Seen) {
	t.Helper()
	now, most, err := target.memory()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fronts {
		t.Logf("%8d strikes: %s", f.strikes.Load(), f.name)
	}
	seen := seenBy(t, referee)
	var took times
	for i, part := range append(fifths, seen) {
		took = append(took, part.Took...)
		t.Logf("fifth %d of the time: %s", i+1, part.Took)
		for _, s := range part.Slowest {
			t.Logf("  %s: %s after %v", s.Due.Format(time.StampMilli), s.Name, s.Took.Round(time.Millisecond))
		}
	}
	slices.Sort(took)
	t.Logf("under attack: %s", took)
	t.Logf("memory: at most %d MB, at the end %d MB", most>>20, now>>20)
	t.Logf("printed: %d KB of log", target.reader.printed()>>10)
	if len(took) == 0 {
		t.Error("no good value was changed")
	}
	if len(seen.Removed) > 0 {
		t.Errorf("%d good values vanished from the kernel, such as %s", len(seen.Removed), seen.Removed[0])
	}
	if most>>20 > *opts.memory && testkit.Judged(t, "the memory of the agent") {
		t.Errorf("the agent took %d MB of memory, want at most %d MB", most>>20, *opts.memory)
	}
	if p99 := took.p99(); *opts.p99 > 0 && p99 > *opts.p99+control && testkit.Judged(t, "the p99 from put to kernel") {
		t.Errorf("the p99 from put to kernel is %v under attack and %v without; want at most %v more", p99, control, *opts.p99)
	}
	answers(t, target)
}

// times are those from a put to the kernel, sorted.
type times []time.Duration

func (t times) p99() time.Duration { return t.quantile(99) }

// String implements fmt.Stringer.
func (t times) String() string {
	return fmt.Sprintf("%d good changes, from put to kernel: p50 %v, p99 %v, longest %v", len(t), t.quantile(50), t.p99(), t.quantile(100))
}

// quantile is that of a percentage.
func (t times) quantile(percent int) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[min(len(t)*percent/100, len(t)-1)].Round(time.Millisecond)
}

// answers checks that the agent serves requests once the attackers are gone.
func answers(t *testing.T, target *target) {
	t.Helper()
	within(t, "a request", target, func(ctx context.Context) error {
		return poll(ctx, func() error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.address(target.web, "/scheduler/stats"), http.NoBody)
			if err != nil {
				return err
			}
			answer, err := target.browser().Do(request)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if answer.StatusCode != http.StatusOK {
				err = cmp.Or(err, fmt.Errorf("%s: %s", answer.Status, text))
			}
			return err
		})
	})
}

// alone returns when the kernel has no interfaces but the loopback and those of referees.
func alone(ctx context.Context) error {
	return poll(ctx, func() error {
		links, err := netlink.LinkList()
		for _, link := range links {
			if name := link.Attrs().Name; name != "lo" && !strings.HasPrefix(name, goodPrefix) {
				err = cmp.Or(err, fmt.Errorf("interface %q is left", name))
			}
		}
		return err
	})
}
