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

// patience is how long an agent may take to come to rest, on a busy machine.
const patience = 3 * time.Minute

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
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- watchAddresses(ctx, referee.seen, referee.look) }()
	defer func() {
		cancel()
		if err := <-watched; err != nil {
			t.Error(err)
		}
	}()
	within(t, "before the attacks", target, referee.declareAll)
	attacked, stop := last(ctx, *opts.length, fronts)
	defer stop()
	target.struck = func() {}
	err := together(
		func() error { return referee.run(attacked) },
		func() error { return wage(attacked, target, fronts) },
		func() error { return guard(attacked, target) },
	)
	if err != nil {
		t.Error(err)
	}
	within(t, "after the attacks", target, referee.awaitQuiet)
	within(t, "leaving", target, target.leave)
	within(t, "without the attackers", target, referee.awaitQuiet)
	report(t, target, referee, fronts)
	target.stop()
}

// within does something that must succeed while the agent runs.
func within(t *testing.T, when string, target *target, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		select {
		case <-target.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := do(ctx); err != nil {
		if late, ok := errors.AsType[*unsettledError](err); ok {
			t.Logf("the agent's own account:\n%s", target.account(t.Context(), late.name))
		}
		t.Fatalf("%s, within %v: %v (the agent runs: %v)", when, patience, err, target.running())
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

// report says what the siege has done, and whether the agent stood it.
func report(t *testing.T, target *target, referee *referee, fronts []*front) {
	t.Helper()
	now, most, err := target.memory()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fronts {
		t.Logf("%8d strikes: %s", f.strikes.Load(), f.name)
	}
	slices.Sort(referee.took)
	t.Logf("%d good changes, from put to kernel: p50 %v, p99 %v, longest %v", len(referee.took),
		quantile(referee.took, 50), quantile(referee.took, 99), quantile(referee.took, 100))
	t.Logf("memory: at most %d MB, at the end %d MB", most>>20, now>>20)
	if len(referee.took) == 0 {
		t.Error("no good value was changed")
	}
	if len(referee.removed) > 0 {
		t.Errorf("%d good values vanished from the kernel, such as %s", len(referee.removed), referee.removed[0])
	}
	if most>>20 > *opts.memory && testkit.Judged(t, "the memory of the agent") {
		t.Errorf("the agent took %d MB of memory, want at most %d MB", most>>20, *opts.memory)
	}
	if p99 := quantile(referee.took, 99); *opts.p99 > 0 && p99 > *opts.p99 && testkit.Judged(t, "the p99 from put to kernel") {
		t.Errorf("the p99 from put to kernel is %v, want at most %v", p99, *opts.p99)
	}
	answers(t, target)
}

// quantile is that of sorted times, in percent.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(time.Millisecond)
}

// answers checks that the agent serves requests once the attackers are gone.
func answers(t *testing.T, target *target) {
	t.Helper()
	within(t, "a request", target, func(ctx context.Context) error {
		return poll(ctx, func() error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+target.web+"/scheduler/stats", http.NoBody)
			if err != nil {
				return err
			}
			answer, err := browser.Do(request)
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
