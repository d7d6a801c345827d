package etcd

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// questions counts what is asked, and answers as told.
type questions struct {
	asked  int
	answer func()
}

func (q *questions) Send(*pb.WatchRequest) error {
	q.asked++
	if q.answer != nil {
		q.answer()
	}
	return nil
}

// watchFor keeps a watchdog for a time, and returns why it ended the watch, if it did.
func watchFor(t *testing.T, v *watchdog, q *questions, d time.Duration) error {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	late, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if v.now == nil {
		v.now = func(context.Context) (*pb.ResponseHeader, error) { return nil, nil } // the zero begin is reached
	}
	if v.compare == nil {
		v.compare = func(context.Context) error { return nil }
	}
	v.keep(late, q, end)
	return context.Cause(ctx)
}

// A line on which nothing is ever answered may be silent, or unable to answer. A second watch tells, and is
// asked once: where it gets no answer, either, nothing ends, and later watches are not asked.
func TestLineThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			answers bool
			err     error
			ends    error
		}{
			"silent":   {answers: true, ends: ErrSilent},
			"unable":   {},
			"lost":     {err: io.ErrUnexpectedEOF, ends: io.ErrUnexpectedEOF},
			"shut out": {err: context.DeadlineExceeded, ends: ErrSilent},
		} {
			var known support
			var q questions
			seconds := 0
			second := func(context.Context) (bool, error) { seconds++; return test.answers, test.err }
			v := &watchdog{after: askAfter, timeout: 3 * time.Second, progress: &known, second: second}
			if err := watchFor(t, v, &q, time.Hour); !errors.Is(err, test.ends) || q.asked != firstAsks || seconds != 1 {
				t.Errorf("%s: after %d questions and %d second watches it ended with %v", name, q.asked, seconds, err)
			}
			if test.ends == nil {
				if err := watchFor(t, v, &q, time.Hour); err != nil || q.asked != firstAsks || seconds != 1 {
					t.Errorf("%s: the next watch was asked %d times, and ended with %v", name, q.asked-firstAsks, err)
				}
			}
		}
	})
}

// A line that has answered is asked while it is silent, and has to go on to answer.
func TestLineThatFallsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var known support
		v := &watchdog{after: askAfter, timeout: 3 * time.Second, progress: &known}
		var q questions
		q.answer = func() {
			if q.asked < 10 {
				time.AfterFunc(time.Second, func() { v.hear(&pb.WatchResponse{WatchId: noWatch}) })
			}
		}
		begun := time.Now()
		err := watchFor(t, v, &q, time.Hour)
		if !errors.Is(err, ErrSilent) || q.asked != 10 || time.Since(begun) > 10*(askAfter+4*time.Second) {
			t.Errorf("ended after %d questions and %v with %v", q.asked, time.Since(begun), err)
		}
		// One that never answered before is not given up once another has.
		q = questions{}
		if err := watchFor(t, &watchdog{after: askAfter, timeout: 3 * time.Second, progress: &known}, &q, time.Hour); !errors.Is(err, ErrSilent) || q.asked != 1 {
			t.Errorf("the next watch ended after %d questions with %v", q.asked, err)
		}
	})
}

// A store without changes has nothing to tell: its watch is not asked until the store has reached the watch's
// first revision.
func TestStoreWithoutChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			now   func(looks int) (int64, error)
			ends  error
			asked int
		}{
			"no change":      {func(int) (int64, error) { return 6, nil }, nil, 0},
			"a later change": {func(looks int) (int64, error) { return int64(4 + looks), nil }, ErrSilent, 1},
			"no answer":      {func(int) (int64, error) { return 0, context.DeadlineExceeded }, context.DeadlineExceeded, 0},
		} {
			var known support
			known.answers.Store(true)
			looks := 0
			v := &watchdog{after: askAfter, timeout: 3 * time.Second, progress: &known, begin: 7}
			v.now = func(context.Context) (*pb.ResponseHeader, error) {
				looks++
				rev, err := test.now(looks)
				return &pb.ResponseHeader{Revision: rev}, err
			}
			var q questions
			err := watchFor(t, v, &q, time.Hour)
			if !errors.Is(err, test.ends) || q.asked != test.asked {
				t.Errorf("%s: %d questions, ended with %v", name, q.asked, err)
			}
			if name == "no change" && looks > int(time.Hour/askAfter) {
				t.Errorf("the revision was read %d times within an hour", looks)
			}
		}
	})
}

// A store whose servers answer no questions is read instead, all the time. The watch ends if the store goes back, also
// to a revision after the listed one.
func TestStoreThatGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			heard int64
			reads []int64 // the last one again and again
			ends  error
		}{
			"no change":           {20, []int64{20}, nil},
			"changes elsewhere":   {20, []int64{20, 30, 40}, nil},
			"behind an event":     {20, []int64{20, 19}, ErrWentBack},
			"behind what is read": {20, []int64{30, 29}, ErrWentBack},
		} {
			var known support
			known.lacks.Store(true)
			v := &watchdog{after: askAfter, timeout: 3 * time.Second, progress: &known, begin: 7}
			v.hear(&pb.WatchResponse{Header: &pb.ResponseHeader{Revision: test.heard}})
			reads := 0
			v.now = func(context.Context) (*pb.ResponseHeader, error) {
				reads++
				return &pb.ResponseHeader{Revision: test.reads[min(reads, len(test.reads))-1]}, nil
			}
			var q questions
			err := watchFor(t, v, &q, time.Hour)
			if !errors.Is(err, test.ends) || q.asked != 0 {
				t.Errorf("%s: %d questions, ended with %v", name, q.asked, err)
			}
			if most := int(time.Hour / askAfter); test.ends == nil && (reads < most-1 || reads > most) {
				t.Errorf("%s: the revision was read %d times within an hour", name, reads)
			}
		}
	})
}
