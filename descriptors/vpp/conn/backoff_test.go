package conn

import (
	"testing"
	"time"
)

// A VPP that breaks each connection at once is dialled with growing waits.
func TestWaitsStartOver(t *testing.T) {
	m := NewManager(Options{Socket: "none", MaxBackoff: time.Second})
	for _, tt := range []struct {
		name   string
		lasted time.Duration
		err    error
		want   bool
	}{
		{"VPP has ended", time.Hour, ErrLost, true}, {"it breaks at once", 20 * time.Millisecond, ErrLost, false},
		{"a fault of the protocol", time.Hour, ErrProtocol, false},
	} {
		if got := m.startsOver(tt.lasted, tt.err); got != tt.want {
			t.Errorf("%s: %v; expected %v", tt.name, got, tt.want)
		}
	}
}
