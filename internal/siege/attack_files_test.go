package siege

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// locks opens files of the agent's folder for writing, locks them in every way, and holds them.
func locks(ctx context.Context, t *target) error {
	const many = 50
	var held []*os.File
	letGo := func() {
		for _, f := range held {
			f.Close()
		}
		held = nil
	}
	defer letGo()
	return t.every(ctx, 5*time.Second, func(n int) error {
		letGo()
		for i := range many {
			f, err := os.OpenFile(filepath.Join(t.files, fmt.Sprintf("held%d.yaml", i)), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				return err
			}
			held = append(held, f)
			_, err = fmt.Fprintf(f, "data: [ # %d\n", n)
			err = errors.Join(err, unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
			whole := unix.Flock_t{Type: unix.F_WRLCK}
			if err = errors.Join(err, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &whole)); err != nil {
				return err
			}
		}
		return nil
	})
}

// links leads the agent's folder to what is no file of it, and no file at all.
func links(ctx context.Context, t *target) error {
	out := map[string]string{
		"root": "/", "proc": "/proc", "zero.yaml": "/dev/zero", "random.json": "/dev/urandom", "stdin.yaml": "/proc/self/fd/0", "kmsg.json": "/dev/kmsg",
		"self": ".", "up": "..", "loop.yaml": "loop.yaml", "passwd.yaml": "/etc/passwd", "status.yaml": filepath.Join(t.dir, "status"), "mem.json": "/proc/self/mem",
	}
	return t.every(ctx, time.Second, func(n int) error {
		for name, to := range out {
			if err := relink(to, filepath.Join(t.files, name)); err != nil {
				return err
			}
		}
		err := unix.Mkfifo(filepath.Join(t.files, fmt.Sprintf("fifo%d.yaml", n%20)), 0o600)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		l, err := net.Listen("unix", filepath.Join(t.files, fmt.Sprintf("socket%d.json", n)))
		if err != nil {
			return err
		}
		return errors.Join(l.Close(), os.MkdirAll(filepath.Join(t.files, "folder.yaml", fmt.Sprint(n)), 0o700))
	})
}

// relink makes a symbolic link, in place of another one.
func relink(to, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(to, path)
}

// crowds makes and removes thousands of files and folders.
func crowds(ctx context.Context, t *target) error {
	const many = 3000
	return t.every(ctx, 5*time.Second, func(n int) error {
		crowd := filepath.Join(t.files, fmt.Sprintf("crowd%d", n%2))
		if err := os.RemoveAll(crowd); err != nil {
			return err
		}
		deep := filepath.Join(crowd, strings.Repeat("d/", 40))
		if err := os.MkdirAll(deep, 0o700); err != nil {
			return err
		}
		for i := range many {
			name := []string{"f%d.yaml", "f%d.json", "\x1b[2J%d.yaml", "new\nline%d.json", strings.Repeat("l", 200) + "%d.yaml", "\xff%d.yaml"}[i%6]
			text := fmt.Sprintf("data: [{key: %s, value: {name: crowd%d, type: DUMMY, bad: %d}}]\n", linux(fmt.Sprintf("crowd%d", i)), i, n)
			if err := os.WriteFile(filepath.Join(crowd, fmt.Sprintf(name, i)), []byte(text), 0o600); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(deep, "deep.yaml"), []byte("data: []\n"), 0o600)
	})
}
