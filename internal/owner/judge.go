package owner

import (
	"bytes"
	"os"
	"strconv"
)

// A verdict is what is known of an agent that a record names.
type verdict int

const (
	// unknown may live: its lease tells.
	unknown verdict = iota
	// gone is dead, or an earlier life of this installation: the label is free.
	gone
	// living runs, so the label is taken.
	living
)

// judge decides what other, which a record names, is to self. runs tells whether a
// process of self's PID namespace runs that began at a certain time.
//
// A copied state folder must not let two hosts take each other's label: an installation
// is its own successor only on the same host, by name or by its boot ID. That two
// processes of one installation run at once is what the lock of the folder excludes.
func judge(other, self Holder, runs func(pid int, started uint64) bool) verdict {
	sameBoot := other.Boot != "" && other.Boot == self.Boot
	switch {
	case other.Life == self.Life:
		return gone
	case sameBoot && other.Space == self.Space && other.Started != 0:
		if runs(other.PID, other.Started) {
			return living
		}
		return gone
	case other.Installation == self.Installation && (sameBoot || other.Host == self.Host):
		return gone
	}
	return unknown
}

// running tells whether the process runs that began at a time, in clock ticks since boot.
func running(pid int, started uint64) bool {
	since, ok := startOf(pid)
	return ok && since == started
}

// startOf is when a process began, in clock ticks since boot: the 22nd field of
// /proc/PID/stat (proc_pid_stat(5)). The second may have spaces and ends with the last
// parenthesis. A zombie does not run.
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
