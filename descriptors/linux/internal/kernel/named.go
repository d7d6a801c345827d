package kernel

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrHidden reports that the host would not see a namespace that is made here.
var ErrHidden = errors.New("mounts made here stay in the mount namespace of the agent")

// Make implements Host, as "ip netns add" does.
func (This) Make(path string) (ID, error) {
	if err := share(filepath.Dir(path)); err != nil {
		return ID{}, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0)
	if err != nil {
		return ID{}, err
	}
	f.Close()
	err = inNew(func() error { return mount("/proc/thread-self/ns/net", path, unix.MS_BIND) })
	if err == nil {
		var id ID
		if id, err = (This{}).Stat(path); err == nil {
			return id, nil
		}
	}
	return ID{}, errors.Join(err, os.Remove(path))
}

// Unmake implements Host, as "ip netns del" does. A file that is not bound is only removed.
func (This) Unmake(path string) error {
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return &fs.PathError{Op: "unmount", Path: path, Err: err}
	}
	return os.Remove(path)
}

// Used implements Host. The link of a process that ends meanwhile cannot be read, and it uses nothing.
func (This) Used(asked func(ID) bool) map[ID]string {
	out := map[ID]string{}
	processes, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, path := range processes {
		pid := strings.Split(path, "/")[2]
		if id, err := (This{}).Stat(path); err == nil && asked(id) && !isAgents(pid) {
			out[id] = pid
		}
	}
	return out
}

// isAgents reports whether a process is the agent or a program that it runs.
func isAgents(pid string) bool {
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	// id (name) state parent: a name may contain blanks and parentheses (proc_pid_stat(5)).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	own := strconv.Itoa(os.Getpid())
	return pid == own || len(fields) > 1 && fields[1] == own
}

// share makes the folder of names a mount that other mount namespaces share, as "ip netns" does. Without that,
// programs that have one of their own, such as those of systemd, would keep a namespace whose name is removed.
// A folder with names stays what it is: a mount on it would hide their mounts, and nobody could remove them.
func share(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as "ip netns": everybody may list the names
		return err
	}
	if receives(dir) {
		return fmt.Errorf("%s: %w", dir, ErrHidden)
	}
	err := mount("", dir, unix.MS_SHARED|unix.MS_REC)
	if !errors.Is(err, unix.EINVAL) { // it is a mount already
		return err
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		return err
	}
	if err := mount(dir, dir, unix.MS_BIND|unix.MS_REC); err != nil {
		return err
	}
	return mount("", dir, unix.MS_SHARED|unix.MS_REC)
}

// mount is mount(2), with the path in its error.
func mount(source, path string, flags uintptr) error {
	if err := unix.Mount(source, path, "none", flags, ""); err != nil {
		return &fs.PathError{Op: "mount", Path: path, Err: err}
	}
	return nil
}

// receives reports whether the mount that contains a folder gets its mounts from another mount namespace,
// which sees none of those that are made here.
func receives(dir string) bool {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return false
	}
	defer f.Close()
	longest, slave := -1, false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// id, parent, device, root, mount point, options, optional fields, a hyphen (proc_pid_mountinfo(5)).
		fields := strings.Fields(lines.Text())
		end := slices.Index(fields, "-")
		if end < 6 {
			continue
		}
		point := fields[4]
		inside := point == "/" || dir == point || strings.HasPrefix(dir, point+"/")
		if inside && len(point) >= longest { // of several at one point, the last one is on top
			longest = len(point)
			slave = slices.ContainsFunc(fields[6:end], func(f string) bool { return strings.HasPrefix(f, "master:") })
		}
	}
	return slave
}
