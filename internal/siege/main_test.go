package siege

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.RunManyAtOnce()
	os.Exit(scratch.Main(m.Run))
}

// options are those of this package's tests.
type options struct {
	length *time.Duration
	only   *string
	all    *bool
	p99    *time.Duration
	logs   *string
}

var opts = options{
	length: flag.Duration("siege.for", 40*time.Second, "how long the attacks last"),
	only:   flag.String("siege.only", "", "a regular expression; only attacks whose name matches take place"),
	all:    flag.Bool("siege.all", false, "also the attacks that the agent is known not to stand yet"),
	p99:    flag.Duration("siege.p99", 0, "the bound of the latency's 99th percentile; 0: none, as a busy machine may be slow"),
	logs:   flag.String("siege.logs", "", "a folder for the agents' whole logs; empty: their ends are shown after a failure"),
}
