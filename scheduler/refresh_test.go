package scheduler_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/keyplane/keyplane/scheduler"
)

// TestVerboseLogsWhatIsReadBack reads back what stands, ours and not.
func TestVerboseLogsWhatIsReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		net := newFakeNet()
		net.set([]string{"stands", "if1", "mtu=9000"})
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		net.descriptors(t, s)
		defer begin(t, s)()
		mustCommit(t, s, scheduler.Txn{Refresh: true})
		if log.Len() > 0 {
			t.Errorf("without being asked to, it logs\n%s", &log)
		}
		mustCommit(t, s, scheduler.Txn{Refresh: true, Verbose: true})
		for _, want := range []string{
			`descriptor=interface key=` + key("if1") + ` ours=true value="{ name:\"if1\" type:DUMMY mtu:9000 }"`,
			`descriptor=interface key=` + key("eth0") + ` ours=false`,
		} {
			if n := strings.Count(log.String(), want); n != 1 {
				t.Errorf("%d times %s in\n%s", n, want, &log)
			}
		}
	})
}
