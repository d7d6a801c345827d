package goruntime

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestProgramLeavesMemory(t *testing.T) {
	before := residentOfFiles(t)
	releaseProgram()
	if after := residentOfFiles(t); after >= before {
		t.Errorf("%d KiB of files are resident, before %d", after, before)
	}
}

// residentOfFiles returns RssFile of this process, in KiB (proc_pid_status(5)).
func residentOfFiles(t *testing.T) (kib int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
