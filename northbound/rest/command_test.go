package rest

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// A command may have had its effect although it failed, so the log says who has sent it.
func TestCommandsThatFailAreLogged(t *testing.T) {
	inWorld(t, func(w *world) {
		var log bytes.Buffer
		o := w.options()
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		w.handler = Handler(o)
		w.says("POST", "/vpp/command", `{"vppclicommand": "set int state"}`, 500, "VPP is not connected")
		if !strings.Contains(log.String(), `command="set int state"`) {
			t.Errorf("the log is %s", &log)
		}
	})
}
