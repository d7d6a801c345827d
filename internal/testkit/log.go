package testkit

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

// A failed test shows so much of the end of its log.
const (
	shownLines = 60
	shownBytes = 16 << 10
)

// Log returns the writer for what runs in a test: agents, schedulers, programs. All calls of one test return the same one.
// It writes to a file, so the first line of a failed test is its own. Such a test ends with the last lines of the file and,
// in its last line, the path of the file. A test that passes removes it.
func Log(t testing.TB) io.Writer {
	t.Helper()
	logs := theLogs()
	logs.mu.Lock()
	defer logs.mu.Unlock()
	if l := logs.of[t]; l != nil {
		return l
	}
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == '*' {
			return '-'
		}
		return r
	}, t.Name())
	file, err := os.CreateTemp("", name[:min(len(name), 100)]+"-*.log") //nolint:usetesting // it is to outlive a test that fails
	if err != nil {
		t.Fatal(err)
	}
	l := &log{file: file}
	logs.of[t] = l
	t.Cleanup(func() {
		t.Helper()
		logs.mu.Lock()
		delete(logs.of, t)
		logs.mu.Unlock()
		l.end(t)
	})
	return l
}

// theLogs are those of the tests that run.
var theLogs = sync.OnceValue(func() *allLogs { return &allLogs{of: map[testing.TB]*log{}} })

type allLogs struct {
	mu sync.Mutex // guards of
	of map[testing.TB]*log
}

// A log is a file until its test ends. What comes later is lost.
type log struct {
	mu   sync.Mutex // guards file
	file *os.File   // nil: the test has ended
}

// Write implements io.Writer. It never fails, as a program under test might end because of that.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_, _ = l.file.Write(p) // a full disk shows elsewhere
	}
	return len(p), nil
}

// end removes the file, or shows its end and its name.
func (l *log) end(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	file := l.file
	l.file = nil
	l.mu.Unlock()
	defer file.Close()
	if !t.Failed() {
		if err := os.Remove(file.Name()); err != nil {
			t.Error(err)
		}
		return
	}
	size, err := file.Seek(0, io.SeekEnd)
	text := make([]byte, min(size, shownBytes))
	if err == nil {
		_, err = file.ReadAt(text, size-int64(len(text)))
	}
	if err != nil {
		t.Error(err)
	}
	t.Logf("the end of the log:\n%s\nthe complete log: %s", LastLines(string(text)), file.Name())
}

// LastLines returns as much of the end of a text as a failed test should show.
func LastLines(text string) string {
	text = strings.TrimRight(text, "\n")
	lines := strings.Split(text[max(0, len(text)-shownBytes):], "\n")
	shown := strings.Join(lines[max(0, len(lines)-shownLines):], "\n")
	if before := len(text) - len(shown); before > 0 {
		return fmt.Sprintf("[%d bytes before]\n%s", before, shown)
	}
	return shown
}
