package events

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// A panic in a task ends the connection, and the task is started again.
func TestPanicEndsTheConnection(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var dropped []error
	e := &Events{Options: Options{Drop: func(why error) { dropped = append(dropped, why) }}}
	runs := 0
	err := e.keepRunning(ctx, func(context.Context) error {
		if runs++; runs < 3 {
			panic("an index")
		}
		cancel()
		return nil
	})
	if err != nil || runs != 3 || len(dropped) != 2 || !errors.Is(dropped[0], conn.ErrProtocol) || !strings.Contains(dropped[0].Error(), "an index") {
		t.Errorf("%d runs, dropped because of %v: %v", runs, dropped, err)
	}
}
