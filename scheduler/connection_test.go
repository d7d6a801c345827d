package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// TestLostConnectionIsNotLostAgain has a connection, which never was ready, report a reason while a
// verb of another connection runs. It is not available; it is not lost again.
func TestLostConnectionIsNotLostAgain(t *testing.T) {
	var log bytes.Buffer
	s := scheduler.New(scheduler.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	g, err := s.Connection("away")
	if err != nil {
		t.Fatal(err)
	}
	type text = *wrapperspb.StringValue
	if _, err := scheduler.Register(s, scheduler.Descriptor[text, struct{}]{
		Name: "thing", Prefix: "thing/",
		Create: func(context.Context, string, text) (struct{}, error) {
			g.Lost(errors.New("no such file"))
			return struct{}{}, nil
		},
		Delete: func(context.Context, string, text, struct{}) error { return nil },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	_, err = s.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{scheduler.Want("thing/a", wrapperspb.String("a"))}})
	cancel()
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	if said := log.String(); !strings.Contains(said, "connection is not available") || strings.Contains(said, "connection lost") {
		t.Errorf("log:\n%s", said)
	}
}
