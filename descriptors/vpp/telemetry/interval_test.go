package telemetry

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// The interval is that of the file, or 30 s with a warning if that is too short.
func TestInterval(t *testing.T) {
	for conf, want := range map[time.Duration]time.Duration{
		0: 30 * time.Second, -1: 30 * time.Second, time.Second: 30 * time.Second, 1001 * time.Millisecond: 1001 * time.Millisecond, time.Hour: time.Hour,
	} {
		var log strings.Builder
		if got := (Config{Interval: conf}).interval(slog.New(slog.NewTextHandler(&log, nil))); got != want {
			t.Errorf("%v: %v, want %v", conf, got, want)
		}
		if warned := log.Len() > 0; warned != (conf != 0 && conf != want) {
			t.Errorf("%v: warned %t", conf, warned)
		}
	}
}
