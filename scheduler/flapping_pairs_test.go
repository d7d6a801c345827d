package scheduler_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/internal/retry"
)

// startPair registers interfaces that depend on each other, as the ends of a VETH, runs s until stop is called, and
// declares two of them.
func startPair(t *testing.T, s *scheduler.Scheduler) (keys []string, stop func()) {
	t.Helper()
	model := models.For[*interfaces.Interface]()
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, struct{}]{
		Name: "interface", Model: model,
		Dependencies: func(_ string, v *interfaces.Interface) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "peer", Key: model.KeyOf(v.GetVeth().GetPeerIfName())}}
		},
		Create: func(context.Context, string, *interfaces.Interface) (struct{}, error) { return struct{}{}, nil },
		Delete: func(context.Context, string, *interfaces.Interface, struct{}) error { return nil },
	})
	must(t, err)
	stop = begin(t, s)
	var changes []scheduler.Change
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		v, err := s.Value(model.KeyOf(names[0]), &interfaces.Interface{Name: names[0], Link: &interfaces.Interface_Veth{Veth: &interfaces.VethLink{PeerIfName: names[1]}}})
		must(t, err)
		changes = append(changes, v.Change())
	}
	mustCommit(t, s, scheduler.Txn{Changes: changes})
	return []string{model.KeyOf("a"), model.KeyOf("b")}, stop
}

// Of values that depend on each other, none waits for the others alone: they flap like any value, however
// their end is reported. The log says so once.
func TestPairIsRemovedAgainAndAgain(t *testing.T) {
	for name, reports := range map[string]func(round int) []int{ // the values that each round reports as gone
		"both at once":             func(int) []int { return []int{1, 0} },
		"one":                      func(int) []int { return []int{0} },
		"now the one, now another": func(round int) []int { return []int{round % 2} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := scheduler.New(scheduler.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
				keys, stop := startPair(t, s)
				defer stop()
				states := func() (out []scheduler.State) {
					for _, key := range keys {
						st, _ := s.Status(key)
						out = append(out, st.State)
					}
					return out
				}
				rounds := 0
				for ; !slices.Contains(states(), scheduler.Retrying) && rounds < 3*retry.After; rounds++ {
					var gone []scheduler.Observed
					for _, i := range reports(rounds) {
						gone = append(gone, scheduler.Observed{Key: keys[i]})
					}
					s.Observe(gone...)
					synctest.Wait()
				}
				if rounds > retry.After {
					t.Errorf("after %d rounds they are %v; want a pause", rounds, states())
				}
				if n := strings.Count(log.String(), "level=WARN"); n != 1 {
					t.Errorf("%d warnings, want one:\n%s", n, &log)
				}
			})
		})
	}
}
