package conn

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

// A socket is noticed in a folder that is there, in one that comes with it, and when it
// was there before.
func TestAppears(t *testing.T) {
	for name, path := range map[string]string{"in a folder": "s", "with its folders": "a/b/s"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, path)
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			there := make(chan struct{})
			go func() {
				defer close(there)
				for ctx.Err() == nil {
					appears(ctx, path)
					if _, err := os.Stat(path); err == nil {
						return
					}
				}
			}()
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, one := range []string{filepath.Join(dir, "other"), path} {
				if err := os.WriteFile(one, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			<-there
			if ctx.Err() != nil {
				t.Fatal("it goes unnoticed")
			}
			appears(ctx, path)
			if ctx.Err() != nil {
				t.Error("what is there is waited for")
			}
		})
	}
}
