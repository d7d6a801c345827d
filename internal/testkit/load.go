package testkit

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// mostLoad is the number of processes per processor that want to run, beyond which a test judges
// no limit of time or memory. The tests of make test alone are several.
const mostLoad = 5

// Judged reports whether a limit of time or memory can be judged now. Otherwise the machine is
// too busy, and the test logs that.
func Judged(t testing.TB, what string) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	load, most, err := loadOf(string(text), runtime.NumCPU())
	if err != nil {
		t.Fatal(err)
	}
	if load > most {
		t.Logf("not judged: %s; the load of this machine is %.1f, and the limit holds up to %.1f", what, load, most)
	}
	return load <= most
}

// loadOf returns the load of the last minute, and the greatest one at which limits are judged.
func loadOf(loadavg string, processors int) (load, most float64, err error) {
	first, _, _ := strings.Cut(loadavg, " ")
	load, err = strconv.ParseFloat(first, 64)
	return load, float64(mostLoad * processors), err
}
