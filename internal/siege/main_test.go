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
	if text := os.Getenv(refereeEnv); text != "" {
		os.Exit(referees(text))
	}
	testkit.RunManyAtOnce()
	os.Exit(scratch.Main(m.Run))
}

// options are those of this package's tests.
type options struct {
	length *time.Duration
	only   *string
	p99    *time.Duration
	memory *int64
	logs   *string
	cgroup *string

	soak     *time.Duration
	soakKeys *int
	soakCSV  *string

	kills *int
}

var opts = options{
	length: flag.Duration("siege.for", 20*time.Second, "how long the attacks last"),
	only:   flag.String("siege.only", "", "a regular expression; only attacks whose name matches take place"),
	p99:    flag.Duration("siege.p99", 0, "the bound of what the attacks add to the 99th percentile of the latency; 0: none"),
	memory: flag.Int64("siege.memory", 250, "the bound of the agent's resident memory, in MB; on a busy machine more attacks are under way at once"),
	logs:   flag.String("siege.logs", "", "a folder for the agents' whole logs; empty: they are kept after a failure"),
	cgroup: flag.String("siege.cgroup", "", "a cgroup in which the agents run, such as one with a limit of memory, which has one for each by its label; empty: that of the test"),

	soak:     flag.Duration("soak.for", 20*time.Second, "how long the agent of the soak runs"),
	soakKeys: flag.Int("soak.keys", 2000, "the number of its keys"),
	soakCSV:  flag.String("soak.csv", "", "a file for the samples of the soak; empty: none"),

	kills: flag.Int("kills", 9, "how many processes TestKills kills"),
}
