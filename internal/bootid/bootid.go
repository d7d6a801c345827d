// Package bootid tells one boot of the host from the next. What the kernel numbers anew at each boot, such as the
// indexes of links, is only the same thing within one boot.
package bootid

import (
	"bytes"
	"os"
)

// Read returns what the kernel draws at each boot; empty: /proc is not that of Linux.
func Read() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(id))
}
