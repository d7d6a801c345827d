package owner

import (
	"bytes"
	"os"
	"strconv"
)

// A liveness is the known state of an agent that a record names.
type liveness int

const (
	// unknown may live: the end of its lease decides.
	unknown liveness = iota
	// gone is dead, or an earlier process of this installation: the label is free.
	gone
	// living runs, so the label is taken.
	living
)

// livenessOf compares the recorded holder other with self. runs reports whether a process of
// self's PID namespace runs that began at a certain time.
//
// Two hosts with copies of one state folder must not take each other's label. So an
// installation is its own successor only on the same host, by name or by boot ID. The lock
// of the folder prevents two running processes of one installation.
func livenessOf(other, self Holder, runs func(pid int, started uint64) bool) liveness {
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
