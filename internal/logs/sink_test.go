package logs_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/internal/logs"
)

// A reader takes no lines before opens is closed.
type reader struct {
	taken bytes.Buffer
	opens chan struct{}
}

func (r *reader) Write(text []byte) (int, error) {
	<-r.opens
	return r.taken.Write(text)
}

// TestReaderThatHangs logs to a reader that takes nothing for a time.
func TestReaderThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{opens: make(chan struct{})}
		table := logs.New(logs.Options{Out: r})
		log := table.Logger("etcd")
		begun := time.Now()
		const lines = 1900
		for i := range lines {
			log.Warn("value refused", "n", i, "text", strings.Repeat("x", 1000))
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("who logs waits for %v", took)
		}
		close(r.opens)
		synctest.Wait()
		got := r.taken.String()
		all := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		written := len(all) - 1
		if written < 900 || written > 1000 || !strings.Contains(all[written], fmt.Sprintf("lines are missing here\" lines=%d", lines-written)) {
			t.Errorf("%d lines, and the last is %.200s", written, all[written])
		}
		log.Warn("after it")
		if !strings.HasSuffix(r.taken.String(), "msg=\"after it\" logger=etcd\n") {
			t.Error("the next line is missing when the call returns")
		}
	})
}
