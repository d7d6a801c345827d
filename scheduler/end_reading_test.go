package scheduler_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/keyplane/keyplane/scheduler"
)

// A reading that the end of the scheduler interrupts is no error: nobody needs to do anything.
func TestEndWhileSomethingIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		_, err := scheduler.Register(s, scheduler.Descriptor[note, struct{}]{
			Name: "thing", Prefix: "thing/",
			Create: func(context.Context, string, note) (struct{}, error) { return struct{}{}, nil },
			Delete: func(context.Context, string, note, struct{}) error { return nil },
			Retrieve: func(ctx context.Context, _ []scheduler.Desired[note]) iter.Seq2[noteFound, error] {
				return func(yield func(noteFound, error) bool) {
					<-ctx.Done()
					yield(noteFound{}, ctx.Err())
				}
			},
		})
		must(t, err)
		stop := begin(t, s)
		must(t, s.Refresh("thing"))
		synctest.Wait()
		stop()
		if strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("the log has\n%s", &log)
		}
	})
}
