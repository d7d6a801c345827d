package retry

import (
	"testing"
	"time"
)

func TestFlaps(t *testing.T) {
	type step struct {
		after time.Duration
		pause time.Duration
		begun bool
	}
	quick := []step{{}, {1 * time.Second, 0, false}, {1 * time.Second, 0, false}, {1 * time.Second, 0, false}, {1 * time.Second, time.Second, true}}
	for name, steps := range map[string][]step{
		"four times are no flap": quick[:4],
		"five times in a minute": quick,
		"the pauses double up to a minute": append(quick[:5:5],
			step{time.Second, 2 * time.Second, false}, step{2 * time.Second, 4 * time.Second, false}, step{4 * time.Second, 8 * time.Second, false},
			step{8 * time.Second, 16 * time.Second, false}, step{16 * time.Second, 32 * time.Second, false},
			step{32 * time.Second, time.Minute, false}, step{61 * time.Second, time.Minute, false}),
		"five times in more than a minute": {{}, {15 * time.Second, 0, false}, {15 * time.Second, 0, false}, {15 * time.Second, 0, false}, {15 * time.Second, 0, false}, {15 * time.Second, 0, false}},
		"what stood for a minute begins again": append(quick[:5:5],
			step{62 * time.Second, 0, false}, step{time.Second, 0, false}, step{time.Second, 0, false}, step{time.Second, 0, false}, step{time.Second, time.Second, true}),
	} {
		var fs Flaps
		now := time.Unix(1e9, 0)
		for i, s := range steps {
			now = now.Add(s.after)
			if pause, begun := fs.Lost("k", now); pause != s.pause || begun != s.begun {
				t.Errorf("%s: loss %d: pause %v, begun %v; want %v, %v", name, i+1, pause, begun, s.pause, s.begun)
			}
		}
	}
}

func TestFlapsAreForgotten(t *testing.T) {
	var fs Flaps
	now := time.Unix(1e9, 0)
	for i := range 1000 {
		fs.Lost(string(rune('a'+i)), now)
	}
	fs.Lost("k", now.Add(2*time.Minute))
	if len(fs.byKey) != 1 {
		t.Errorf("%d keys are known, want 1", len(fs.byKey))
	}
}
