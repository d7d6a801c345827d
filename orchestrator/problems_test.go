package orchestrator

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestProblemsAreLoggedUpToANumber: the first new ones, and how many more there are. What was
// logged before is not logged again.
func TestProblemsAreLoggedUpToANumber(t *testing.T) {
	var out strings.Builder
	log, l := slog.New(slog.NewTextHandler(&out, nil)), &source{Source: Source{Name: "files"}}
	problems := make([]error, 5000)
	for i := range problems {
		problems[i] = fmt.Errorf("problem %d", i)
	}
	for _, step := range []struct {
		problems []error
		lines    int
		more     string
	}{{problems[:5], 5, ""}, {problems[:25], 20, ""}, {problems, 21, "more=4955 problems=5000"}, {problems, 0, ""}, {problems[:7], 0, ""}, {nil, 1, "no problems any more"}} {
		out.Reset()
		l.reportProblems(log, step.problems)
		if got := strings.Count(out.String(), "\n"); got != step.lines || !strings.Contains(out.String(), step.more) {
			t.Errorf("%d problems: %d lines, want %d with %q:\n%.3000s", len(step.problems), got, step.lines, step.more, out.String())
		}
	}
}
