package scheduler

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// Flush waits for a slow output, and gives up with its context.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &gatedWriter{open: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		s := New(Options{Out: out})
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		if _, err := s.Commit(ctx, Txn{Description: "one to be written"}); err != nil {
			t.Fatal(err)
		}

		impatient, stop := context.WithCancel(ctx)
		stop()
		if err := s.Flush(impatient); !errors.Is(err, context.Canceled) {
			t.Errorf("Flush of an output that is stuck: %v, want that its context ended", err)
		}
		close(out.open)
		if err := s.Flush(ctx); err != nil || !strings.Contains(out.String(), "one to be written") {
			t.Errorf("after Flush (%v) the output has %q", err, out.String())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

type gatedWriter struct {
	open chan struct{}
	strings.Builder
}

func (w *gatedWriter) Write(p []byte) (int, error) {
	<-w.open
	return w.Builder.Write(p)
}

// WriteString keeps io.WriteString from going past Write.
func (w *gatedWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }
