package conformance_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/scheduler/conformance"
)

// thinVar tells a second run of this test program what to leave out.
const thinVar = "CONFORMANCE_TEST_THIN"

type routeSuite = conformance.Suite[route, handle]

// thin are suites that would not notice much, by what they are told to add.
func thin() map[string]func(*routeSuite) {
	without := func(how conformance.How) func(*routeSuite) {
		return func(s *routeSuite) {
			s.Changes = slices.DeleteFunc(s.Changes, func(c conformance.Change[route]) bool { return c.How == how })
		}
	}
	return map[string]func(*routeSuite){
		"Values: expected at least two":               func(s *routeSuite) { s.Values = s.Values[:1] },
		"Invalid: expected some":                      func(s *routeSuite) { s.Invalid = nil },
		"Changes: expected one that is Updated":       without(conformance.Updated),
		"Changes: expected one that is Recreated":     without(conformance.Recreated),
		"Changes: expected one that is Unchanged":     without(conformance.Unchanged),
		"expected a Key, the descriptor has no Model": func(s *routeSuite) { *s = withoutModel(); s.Values[1].Key = "" },
	}
}

// TestThin is what the second run runs, and fails.
func TestThin(t *testing.T) {
	leaveOut, ok := thin()[os.Getenv(thinVar)]
	if !ok {
		t.Skip("runs inside TestSuiteMustShowEnough only")
	}
	s := suite(func(*table, *descriptor) {})
	leaveOut(&s)
	conformance.Run(t, s)
}

func TestSuiteMustShowEnough(t *testing.T) {
	for told := range thin() {
		t.Run(told, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestThin$")
			cmd.Env = append(os.Environ(), thinVar+"="+told)
			out, err := cmd.CombinedOutput()
			var failed *exec.ExitError
			if !errors.As(err, &failed) || !strings.Contains(string(out), told) {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
