package filedb

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What counts of a file, look by look, without any file.
func TestWhatCountsOfAFile(t *testing.T) {
	cfg := Config{Grace: 2 * time.Second, VanishGrace: 300 * time.Millisecond}
	one, two := &content{}, &content{}
	empty := &content{blank: true}
	both, less := &content{entries: []entry{{key: "a"}, {key: "b"}}}, &content{entries: []entry{{key: "a"}}}
	start := time.Unix(1_000_000, 0)
	at := func(d time.Duration) identity { return identity{ino: 1, status: start.Add(d)} }
	type step struct {
		now   time.Duration // of the look, after start
		sight sight
		good  *content
		state state
		until time.Duration // after start; 0: none
		keep  bool
	}
	tests := []struct {
		name  string
		steps []step
	}{
		{"an old file is final at once", []step{
			{time.Hour, sight{id: at(0), content: one}, one, final, 0, true},
		}},
		{"a file just saved is read again when something happens", []step{
			{time.Millisecond, sight{id: at(0), content: one}, one, racy, 0, true},
			{time.Second, sight{id: at(0), content: one}, one, final, 0, true},
		}},
		{"an old empty file needs no grace", []step{
			{time.Hour, sight{id: at(0), content: empty}, empty, final, 0, true},
		}},
		{"an empty file keeps what it said until the grace is over", []step{
			{time.Second, sight{id: at(0), content: one}, one, final, 0, true},
			{10 * time.Second, sight{id: at(10 * time.Second), content: empty}, one, blank, 12 * time.Second, true},
			{11 * time.Second, sight{id: at(10 * time.Second), content: empty}, one, blank, 12 * time.Second, true},
			{12 * time.Second, sight{id: at(10 * time.Second), content: empty}, empty, final, 0, true},
		}},
		{"a clock that is behind delays the grace, but not for ever", []step{
			{0, sight{id: at(time.Hour), content: empty}, nil, blank, 2 * time.Second, true},
			{2 * time.Second, sight{id: at(time.Hour), content: empty}, empty, racy, 0, true},
		}},
		{"a file that is gone goes when the grace is over", []step{
			{time.Second, sight{id: at(0), content: one}, one, final, 0, true},
			{5 * time.Second, sight{err: fs.ErrNotExist}, one, gone, 5300 * time.Millisecond, true},
			{5200 * time.Millisecond, sight{err: fs.ErrNotExist}, one, gone, 5300 * time.Millisecond, true},
			{5300 * time.Millisecond, sight{err: fs.ErrNotExist}, one, gone, 5300 * time.Millisecond, false},
		}},
		{"a file that comes back in time was never gone", []step{
			{time.Second, sight{id: at(0), content: one}, one, final, 0, true},
			{5 * time.Second, sight{err: fs.ErrNotExist}, one, gone, 5300 * time.Millisecond, true},
			{5200 * time.Millisecond, sight{id: at(5 * time.Second), content: two}, two, final, 0, true},
			{9 * time.Second, sight{err: fs.ErrNotExist}, two, gone, 9300 * time.Millisecond, true},
		}},
		{"a file that never said anything is not kept", []step{
			{time.Second, sight{err: fs.ErrNotExist}, nil, gone, 1300 * time.Millisecond, false},
		}},
		{"a busy file is looked at again, less and less often", []step{
			{time.Second, sight{id: at(0), content: one}, one, final, 0, true},
			{2 * time.Second, sight{id: at(2 * time.Second), err: errBusy}, one, busy, 2001 * time.Millisecond, true},
			{2040 * time.Millisecond, sight{id: at(2 * time.Second), err: errBusy}, one, busy, 2050 * time.Millisecond, true},
			{9 * time.Second, sight{id: at(2 * time.Second), err: errBusy}, one, busy, 10 * time.Second, true},
			{10 * time.Second, sight{id: at(9 * time.Second), content: two}, two, final, 0, true},
		}},
		{"a file that is empty when its writer closes it keeps what it said, for a grace", []step{
			{time.Second, sight{id: at(0), content: one}, one, final, 0, true},
			{2 * time.Second, sight{id: at(2 * time.Second), err: errBusy}, one, busy, 2001 * time.Millisecond, true},
			{60 * time.Second, sight{id: at(2 * time.Second), content: empty}, one, blank, 62 * time.Second, true},
			{62 * time.Second, sight{id: at(2 * time.Second), content: empty}, empty, final, 0, true},
		}},
		{"a file from which keys are gone is shrunk for a time, however often it changes", []step{
			{time.Second, sight{id: at(0), content: both}, both, final, 0, true},
			{5 * time.Second, sight{id: at(5 * time.Second), content: less}, less, shrunk, 5300 * time.Millisecond, true},
			{5200 * time.Millisecond, sight{id: at(5100 * time.Millisecond), content: two}, two, shrunk, 5300 * time.Millisecond, true},
			{5300 * time.Millisecond, sight{id: at(5100 * time.Millisecond), content: two}, two, final, 0, true},
			{6 * time.Second, sight{id: at(6 * time.Second), content: both}, both, racy, 0, true},
			{7 * time.Second, sight{id: at(7 * time.Second), content: less}, less, shrunk, 7300 * time.Millisecond, true},
			{7300 * time.Millisecond, sight{id: at(7300 * time.Millisecond), content: two}, two, racy, 0, true},
		}},
		{"what was empty for long enough does not wait again", []step{
			{time.Second, sight{id: at(0), content: both}, both, final, 0, true},
			{10 * time.Second, sight{id: at(10 * time.Second), content: empty}, both, blank, 12 * time.Second, true},
			{12 * time.Second, sight{id: at(10 * time.Second), content: empty}, empty, final, 0, true},
		}},
		{"what cannot be read because files are short is read again soon", []step{
			{time.Second, sight{id: at(0), content: one}, one, final, 0, true},
			{2 * time.Second, sight{id: at(2 * time.Second), err: unreadable("a.yaml", unix.EMFILE)}, one, racy, 3 * time.Second, true},
			{3 * time.Second, sight{id: at(2 * time.Second), content: two}, two, final, 0, true},
		}},
		{"what cannot be read or parsed keeps what it said", []step{
			{time.Second, sight{id: at(0), content: one}, one, final, 0, true},
			{2 * time.Second, sight{id: at(0), err: fs.ErrPermission}, one, racy, 0, true},
			{3 * time.Second, sight{id: at(0), fault: fmt.Errorf("broken")}, one, final, 0, true},
			{4 * time.Second, sight{id: at(3 * time.Second), content: two}, two, final, 0, true},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var f file
			for i, s := range tt.steps {
				var keep bool
				f, keep = f.sees(s.sight, start.Add(s.now), cfg)
				until := time.Duration(0)
				if !f.until.IsZero() {
					until = f.until.Sub(start)
				}
				if f.good != s.good || f.state != s.state || until != s.until || keep != s.keep {
					t.Errorf("look %d: good %p, state %d, until %v, keep %v; want %p, %d, %v, %v",
						i+1, f.good, f.state, until, keep, s.good, s.state, s.until, s.keep)
				}
				if wantFault := s.sight.fault != nil || errors.Is(s.sight.err, fs.ErrPermission) || passes(s.sight.err); (f.fault != nil) != wantFault && f.state != busy {
					t.Errorf("look %d: fault %v", i+1, f.fault)
				}
			}
		})
	}
}

func TestAFileReadInTheSameTickIsReadAgain(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	id := identity{ino: 1, status: now}
	f, _ := file{}.sees(sight{id: id, content: &content{}}, now.Add(time.Millisecond), Config{})
	if !f.changed(id) {
		t.Error("a second change within the tick of the file system's clock would go unnoticed")
	}
	f, _ = f.sees(sight{id: id, content: &content{}}, now.Add(time.Second), Config{})
	if f.changed(id) {
		t.Error("a file is read again and again")
	}
}

// A file that was half written has a fault until it says something whole: nobody may
// conclude from a fault that is gone that all is well.
func TestHalfAFileIsNeverWithoutAFault(t *testing.T) {
	cfg := Config{Grace: 2 * time.Second, VanishGrace: 300 * time.Millisecond}
	start := time.Unix(1_000_000, 0)
	at := func(d time.Duration) identity { return identity{ino: 1, status: start.Add(d)} }
	broken := errors.New("does not parse")
	f, now := file{}, time.Duration(0)
	look := func(after time.Duration, s sight) {
		now += after
		f, _ = f.sees(s, start.Add(now), cfg)
	}
	look(time.Second, sight{id: at(0), content: &content{}})
	for range 4 { // it is written again and again, a piece each time
		look(time.Second, sight{id: at(now), err: errBusy})
	}
	for _, s := range []sight{
		{id: at(now), err: errBusy},
		{id: at(now), fault: broken},
		{id: at(now), err: errBusy}, // a writer that mends it
		{id: at(now), content: &content{blank: true}},
		{id: at(now), err: errBusy},
	} {
		if look(10*time.Millisecond, s); f.fault == nil {
			t.Errorf("no fault after %+v", s)
		}
	}
	if look(time.Second, sight{id: at(now), content: &content{}}); f.fault != nil {
		t.Errorf("a whole file has the fault %v", f.fault)
	}
}
