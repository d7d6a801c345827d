package goruntime

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/mappings"
)

// releaseProgram takes the pages of the program's own file out of the resident memory. Most of
// them were needed by the start alone. The others come back from the kernel's page cache when they
// are used. An error has no effect but that the pages stay.
func releaseProgram() {
	info, err := os.Stat("/proc/self/exe")
	if err != nil {
		return
	}
	parts, err := mappings.Of(info)
	if err != nil {
		return
	}
	for _, part := range parts {
		// A page that was changed has no copy in the file. Addresses of a program that can be
		// loaded anywhere are written into its pages before it starts.
		if part.Writable || part.Changed > 0 {
			continue
		}
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, part.From, part.To-part.From, unix.MADV_DONTNEED)
	}
}
