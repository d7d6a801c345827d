package appear

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
)

// A socket is noticed in a folder that is there, in one that comes with it, in one that is
// made again, as systemd does, and when it was there before.
func TestAbsence(t *testing.T) {
	for name, path := range map[string]string{"in a folder": "s", "with its folders": "a/b/s"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "vpp", path)
			absent := Absence{Path: path}
			defer absent.End()
			for _, calm := range []bool{true, false} {
				noticed := awaitSocket(t, &absent, calm)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				for _, one := range []string{filepath.Join(filepath.Dir(path), "other"), path} {
					if err := os.WriteFile(one, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if !<-noticed {
					t.Fatal("it goes unnoticed")
				}
				if err := os.RemoveAll(filepath.Join(dir, "vpp")); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// awaitSocket waits as a Manager does, whose waits are short after each beginning of a watch.
// It sends whether the socket came before the end of a long wait.
func awaitSocket(t *testing.T, absent *Absence, calm bool) <-chan bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	out := make(chan bool, 1)
	go func() {
		defer cancel()
		for !exists(absent.Path) {
			begins := absent.watcher == nil
			d := testkit.Patience
			if begins {
				d = time.Millisecond
			}
			if !absent.Wait(ctx, d, calm && !begins) && !begins {
				break
			}
		}
		out <- exists(absent.Path) && ctx.Err() == nil
	}()
	return out
}
