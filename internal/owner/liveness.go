package owner

import (
	"bytes"
	"os"
	"strconv"
)

// dead reports that the recorded holder other does not live: it is an earlier life of this installation, or a process that
// does not run any more. runs reports whether a process of self's PID namespace runs that began at a certain time.
//
// Two machines with copies of one state folder must not take each other's label, even under one host name. So an
// installation is its own successor only on the machine that has been up since: after another boot, the lease
// of the old key decides. first says that self has not had the label yet. Later, who has the key has taken it from self, and lives.
// The lock of the folder prevents two running processes of one installation.
func dead(other, self Holder, first bool, runs func(pid int, started uint64) bool) bool {
	sameBoot := other.Boot != "" && other.Boot == self.Boot
	switch {
	case other.Life == self.Life:
		return true
	case sameBoot && other.Space == self.Space && other.Started != 0:
		return !runs(other.PID, other.Started)
	}
	return first && sameBoot && other.Installation == self.Installation
}

// running reports whether the process runs that began at a time, in clock ticks since
// boot.
func running(pid int, started uint64) bool {
	since, ok := startOf(pid)
	return ok && since == started
}

// startOf returns the start of a process, in clock ticks since boot: the 22nd field of
// /proc/PID/stat (proc_pid_stat(5)). The second field may have spaces and ends with the
// last parenthesis. A zombie does not run.
func startOf(pid int) (uint64, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	end := bytes.LastIndexByte(text, ')')
	if err != nil || end < 0 {
		return 0, false
	}
	fields := bytes.Fields(text[end+1:])
	const state, started = 0, 19
	if len(fields) <= started || string(fields[state]) == "Z" {
		return 0, false
	}
	n, err := strconv.ParseUint(string(fields[started]), 10, 64)
	return n, err == nil
}
