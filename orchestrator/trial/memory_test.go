package trial_test

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/orchestrator/trial"
)

// TestLossOfPower loses power after each step of a trial. The trials and the content of layers have files of
// their own, so one of them may have reached the disk before the other.
func TestLossOfPower(t *testing.T) {
	const step = 10 * time.Second
	cancel := func(a *agent) {
		if _, err := a.Cancel(a.Context(), "agentctl"); err != nil {
			a.Error(err)
		}
	}
	for _, test := range []struct {
		what   string
		do     func(a *agent) // when all of the trial of if1=1001 is on the disk; nil: power is lost before
		stands string
	}{
		{what: "begun", stands: "if1=1000"},
		{what: "confirmed", do: func(a *agent) {
			if _, err := a.Confirm("agentctl"); err != nil {
				a.Error(err)
			}
		}, stands: "if1=1001"},
		{what: "cancelled", do: cancel, stands: "if1=1000"},
		{what: "cancelled and changed", do: func(a *agent) { cancel(a); a.declare("if1=1500"); _ = a.intent.Sync() }, stands: "if1=1500"},
		{what: "over", do: func(a *agent) { a.after(step) }, stands: "if1=1000"},
	} {
		t.Run(test.what, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *host) {
				h.live(t, func(a *agent) {
					a.declare("if1=1000")
					a.try("if1=1001", step)
					_ = h.intent.Sync()
					if test.do != nil {
						_ = h.trials.Sync()
						test.do(a)
					}
				})
				h.intent.losePower()
				h.trials.losePower()
				<-time.After(step)
				h.live(t, func(a *agent) { a.expect("after the start", test.stands) })
			})
		})
	}
}

// TestMemoryIsFullAtTheEnd cannot take a trial back at first: the layer cannot be saved.
func TestMemoryIsFullAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, h *host) {
		h.live(t, func(a *agent) {
			a.try("if1=1001", time.Minute)
			h.intent.setFull(true)
			a.after(2 * time.Minute)
			a.expect("while nothing can be saved", "if1=1001")
			if _, err := a.Confirm("agentctl"); !errors.Is(err, trial.ErrNoTrial) {
				t.Errorf("confirmed after its end: %v", err)
			}
			h.intent.setFull(false)
			a.after(2 * time.Second)
			a.expect("afterwards", "")
		})
	})
}

// TestTrialCannotBeDeleted ends trials while the memory of trials is full. No later change is undone.
func TestTrialCannotBeDeleted(t *testing.T) {
	for what, end := range map[string]func(a *agent){
		"cancelled": func(a *agent) {
			a.try("if1=1001", time.Minute)
			a.trials.setFull(true)
			if _, err := a.Cancel(a.Context(), "agentctl"); err != nil {
				a.Error(err)
			}
		},
		"its time is over": func(a *agent) {
			a.try("if1=1001", time.Minute)
			a.trials.setFull(true)
			a.after(time.Hour)
		},
		"failed": func(a *agent) {
			a.fails["bad"], a.takes = true, time.Second
			time.AfterFunc(a.takes/2, func() { a.trials.setFull(true) })
			if _, err := a.Try(a.Context(), request("if1=1001 bad=1"), time.Minute); err == nil {
				a.Error("a trial with a value that fails begins")
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *host) {
				h.live(t, func(a *agent) {
					a.declare("if1=1000")
					end(a)
					a.expect("taken back", "if1=1000")
					if _, err := a.Declare(t.Context(), request("if1=1500")); !errors.Is(err, trial.ErrNotDeleted) || !errors.Is(err, errFull) {
						t.Errorf("a change while the trial is saved: %v", err)
					}
					if list := a.List(); len(list) > 0 {
						t.Errorf("the list is %+v", list)
					}
					h.trials.setFull(false)
					a.declare("if1=1500") // deletes the trial
				})
				h.live(t, func(a *agent) {
					a.expect("after a restart", "if1=1500")
					h.takes = 0
					end(a)
					h.trials.setFull(false)
					a.after(2 * time.Second)
					if len(h.trials.all) > 0 {
						t.Errorf("trials are still saved: %v", h.trials.all)
					}
				})
			})
		})
	}
}

// TestMemoryIsFullAtTheStart takes trials back that are due at a start, but cannot save that at first.
// The trials stay until it is saved: the memory of the layer still has their values.
func TestMemoryIsFullAtTheStart(t *testing.T) {
	for before, after := range map[string]string{"": "", "if1=1000": "if1=1000"} {
		bubble(t, func(t *testing.T, h *host) {
			var saved map[string][]byte
			h.live(t, func(a *agent) {
				a.declare(before)
				saved = maps.Clone(h.intent.all)
				q := request("if1=1001 if2=2000")
				q.Values[0].Labels = map[string]string{"from": "a trial"}
				if _, err := a.Try(t.Context(), q, time.Minute); err != nil {
					t.Error(err)
				}
			})
			<-time.After(time.Hour)
			h.intent.full = true
			for range 2 { // a restart loses nothing
				h.live(t, func(a *agent) {
					a.expect("while nothing can be saved", after)
					if list := a.List(); len(list) != 1 {
						t.Errorf("the list is %+v", list)
					}
					if _, err := a.Declare(t.Context(), request("if9=9")); !errors.Is(err, trial.ErrOnTrial) || !strings.HasSuffix(err.Error(), "until it is taken back") {
						t.Errorf("a change meanwhile: %v", err)
					}
					if _, err := a.Try(t.Context(), request("if9=9"), time.Minute); !errors.Is(err, trial.ErrOnTrial) {
						t.Errorf("a trial meanwhile: %v", err)
					}
				})
			}
			h.live(t, func(a *agent) {
				h.intent.setFull(false)
				a.after(2 * time.Second)
				a.expect("afterwards", after)
				if list := a.List(); len(list) != 0 || len(h.trials.all) != 0 {
					t.Errorf("the list is %+v; saved are %q", list, h.trials.all)
				}
				if !maps.EqualFunc(h.intent.all, saved, bytes.Equal) {
					t.Errorf("the memory has %q, want %q", h.intent.all, saved)
				}
			})
			h.live(t, func(a *agent) { a.expect("after the last start", after) })
		})
	}
}
