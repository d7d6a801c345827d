package watchdog_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/internal/pulse"
	"github.com/keyplane/keyplane/internal/watchdog"
)

func TestAStuckLoopEndsTheReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loop, other pulse.Pulse
		var said bytes.Buffer
		reports, seen := 0, 0
		w := watchdog.Watchdog{Every: 10 * time.Second, Notify: func(_ context.Context, state string) {
			if state != "WATCHDOG=1" {
				t.Errorf("reported %q", state)
			}
			reports++
		}, Loops: map[string]*pulse.Watch{"scheduler": loop.Watch(), "other": other.Watch()}, Log: slog.New(slog.NewTextHandler(&said, nil))}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		expect := func(after time.Duration, want int) {
			t.Helper()
			<-time.After(after)
			synctest.Wait()
			if got := reports - seen; got != want {
				t.Errorf("%d reports within %s; expected %d", got, after, want)
			}
			seen = reports
		}
		expect(35*time.Second, 4)
		loop.Work()
		expect(40*time.Second, 1) // the first look finds new work
		if !strings.Contains(said.String(), "loop=scheduler") || strings.Contains(said.String(), "loop=other") {
			t.Errorf("the log does not name the stuck loop alone: %s", &said)
		}
		loop.Rest()
		expect(20*time.Second, 2)
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestPeriodIsAThirdOfTheLimit(t *testing.T) {
	for _, c := range []struct {
		limit, pid string
		want       time.Duration
		wrong      bool
	}{
		{"", "", 0, false},
		{"60000000", "", 20 * time.Second, false},
		{"60000000", "7", 20 * time.Second, false},
		{"60000000", "8", 0, false},
		{"1", "", time.Millisecond, false},
		{"soon", "", 0, true},
		{"0", "", 0, true},
		{"-1", "", 0, true},
	} {
		env := map[string]string{"WATCHDOG_USEC": c.limit, "WATCHDOG_PID": c.pid}
		got, err := watchdog.Period(func(name string) string { return env[name] }, 7)
		if got != c.want || (err != nil) != c.wrong {
			t.Errorf("limit %q of process %q: %s, %v; expected %s", c.limit, c.pid, got, err, c.want)
		}
	}
}
