package conns

import "testing"

func TestConnectionsLeaveFilesToTheAgent(t *testing.T) {
	if got := most(1 << 40); got >= 1<<40 || got < 1 {
		t.Errorf("limit %d, want at most a quarter of the limit of open files", got)
	}
	if got := most(2); got != 2 {
		t.Errorf("limit %d, want 2", got)
	}
}
