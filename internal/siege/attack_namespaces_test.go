package siege

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// namespaces refers to network namespaces that are none. To open some of them blocks for
// ever, or has an effect.
func namespaces(ctx context.Context, t *target) error {
	fifo, plain := filepath.Join(t.dir, "fifo"), filepath.Join(t.dir, "plain")
	writeFile(t, plain, "this is no namespace")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		return fmt.Errorf("making %s: %w", fifo, err)
	}
	references := []string{
		fifo, plain, t.dir, "/dev/zero", "/dev/full", "/dev/ptmx", "/dev/tty", "/proc/self/ns/mnt", "/proc/self/fd/0", "/proc/kmsg", "/proc/self/mem",
		"/nowhere", "relative", "", "/" + strings.Repeat("x", 1<<20), "/" + strings.Repeat("a/", 60_000), "/tmp/\x00/etc", fifo + "/" + fifo,
	}
	return t.every(ctx, time.Second, func(n int) error {
		var items []item
		for i, reference := range references {
			name := fmt.Sprintf("ns%d", (i+n)%len(references))
			items = append(items, dummy(name, fmt.Sprintf(`,"namespace":{"type":"FD","reference":%s}`, quoted(reference))))
		}
		for i, kind := range []string{"NSID", "PID", "MICROSERVICE"} {
			reference := []string{"../../" + fifo, "-1", "0", "1 2", "18446744073709551616", "self", "\x1b[2J"}[n%7]
			items = append(items, dummy(fmt.Sprintf("nk%d", i), fmt.Sprintf(`,"namespace":{"type":%q,"reference":%s}`, kind, quoted(reference))))
		}
		return t.everywhere(ctx, "namespaces", items...)
	})
}
