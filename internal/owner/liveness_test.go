package owner

import (
	"os"
	"testing"
)

func TestDead(t *testing.T) {
	self := Holder{Installation: "i1", Host: "alpha", PID: 7, Life: "l1", Boot: "b1", Space: "s1", Started: 70}
	change := func(f func(*Holder)) Holder {
		other := self
		other.Life = "l0"
		f(&other)
		return other
	}
	alive := func(pid int, started uint64) bool { return pid == 5 && started == 50 }
	tests := []struct {
		name  string
		other Holder
		want  bool // at first
		later bool // after self has had the label
	}{
		{"itself", self, true, true},
		{"a process that runs", change(func(h *Holder) { h.PID, h.Started, h.Installation = 5, 50, "i2" }), false, false},
		{"a process that runs, of the same installation", change(func(h *Holder) { h.PID, h.Started = 5, 50 }), false, false},
		{"a process whose number another has now", change(func(h *Holder) { h.PID, h.Started, h.Installation = 5, 49, "i2" }), true, true},
		{"a process that is dead, of another installation", change(func(h *Holder) { h.PID, h.Installation = 6, "i2" }), true, true},
		{"a process that is dead", change(func(h *Holder) { h.PID = 6 }), true, true},
		{"the installation in another container", change(func(h *Holder) { h.PID, h.Started, h.Space, h.Host = 5, 50, "s2", "container" }), true, false},
		{"the installation before the host was started again, or a copy of the host", change(func(h *Holder) { h.PID, h.Started, h.Boot = 5, 50, "b0" }), false, false},
		{"a copy of the installation on another host", change(func(h *Holder) { h.Boot, h.Host = "b2", "beta" }), false, false},
		{"another installation in another container", change(func(h *Holder) { h.Space, h.Installation = "s2", "i2" }), false, false},
		{"another installation on another host", change(func(h *Holder) { h.Boot, h.Host, h.Installation = "b2", "beta", "i2" }), false, false},
		{"another installation on a host without a boot ID", change(func(h *Holder) { h.Boot, h.Started, h.Installation = "", 0, "i2" }), false, false},
	}
	for _, tt := range tests {
		if got := dead(tt.other, self, true, alive); got != tt.want {
			t.Errorf("%s: dead is %t", tt.name, got)
		}
		if got := dead(tt.other, self, false, alive); got != tt.later {
			t.Errorf("%s, later: dead is %t", tt.name, got)
		}
	}
}

func TestRunning(t *testing.T) {
	self := Self("vpp1", "i")
	if self.Started == 0 || !running(os.Getpid(), self.Started) || running(os.Getpid(), self.Started+1) || running(1<<30, 1) {
		t.Errorf("this process: %+v", self)
	}
	if got, ok := parse(self.bytes()); !ok || got != self {
		t.Errorf("read %+v, want %+v", got, self)
	}
	for _, text := range []string{"", "null", "{}", "vpp1", `{"pid":"x"}`} {
		if _, ok := parse([]byte(text)); ok {
			t.Errorf("%q is no holder", text)
		}
	}
}
