// Package mappings lists where a file is mapped into the memory of this process.
//
//	info, err := os.Stat("/proc/self/exe")
//	...
//	parts, err := mappings.Of(info)
package mappings

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Mapping is one part of the memory that shows a file.
type Mapping struct {
	From, To uintptr // the addresses; To is behind the last one
	Writable bool
	// Changed is the number of bytes in pages that this process has changed, so that they
	// no longer show the file. Only a private mapping has some.
	Changed uint64
}

// Of returns the mappings of a file, by its device and inode.
func Of(info os.FileInfo) ([]Mapping, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, fmt.Errorf("%s: %w", info.Name(), errors.ErrUnsupported)
	}
	all, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	defer all.Close()
	return read(all, fmt.Sprintf("%02x:%02x", unix.Major(st.Dev), unix.Minor(st.Dev)), strconv.FormatUint(st.Ino, 10))
}

// read reads the format of /proc/PID/smaps (proc_pid_smaps(5)). A mapping begins like this, and
// lines such as "Anonymous:   4 kB" about it follow:
//
//	7f00-7f10 r--s 00000000 fd:01 1234  /path
func read(all io.Reader, device, inode string) (out []Mapping, err error) {
	var of *Mapping // nil: of another file
	lines := bufio.NewScanner(all)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			if of = nil; fields[3] != device || fields[4] != inode {
				continue
			}
			m := Mapping{Writable: strings.Contains(fields[1], "w")}
			if _, err := fmt.Sscanf(fields[0], "%x-%x", &m.From, &m.To); err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			out = append(out, m)
			of = &out[len(out)-1]
		case of != nil && len(fields) == 3 && fields[0] == "Anonymous:":
			kib, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			of.Changed = kib << 10
		}
	}
	return out, lines.Err()
}
