package kvdbsync_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A lease is a life with a store that answers as it is told.
type lease struct {
	kvdbsync.Renewal
	mu     sync.Mutex // guards answer
	answer error
}

func begin(ttl time.Duration, answer error) *lease {
	l := &lease{answer: answer}
	l.Begin(context.Background(), ttl, time.Now(), func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.answer
	})
	return l
}

func (l *lease) end(t *testing.T) {
	t.Helper()
	for range 2 {
		if err := l.End(func() error { return errDown }); !errors.Is(err, errDown) {
			t.Errorf("End returns %v", err)
		}
	}
}

func TestLife(t *testing.T) {
	tests := []struct {
		name   string
		answer error
		over   time.Duration // when it is over; 0: it is not
	}{
		{"renewed", nil, 0},
		{"never renewed", errDown, 9 * time.Second},
		{"ended by the store", kvdbsync.ErrSessionOver, 3 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, began := begin(9*time.Second, tt.answer), time.Now()
				var over time.Duration
				select {
				case <-l.Lost():
					over = time.Since(began)
				case <-time.After(time.Minute):
				}
				if over != tt.over || (l.Over() != nil) != (over > 0) {
					t.Errorf("over after %v (%v), want %v", over, l.Over(), tt.over)
				}
				l.end(t)
			})
		})
	}
}

func TestLifeThatRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(9*time.Second, errDown)
		<-time.After(5 * time.Second) // the second renewing fails, too
		l.mu.Lock()
		l.answer = nil
		l.mu.Unlock()
		<-time.After(time.Minute)
		if err := l.Over(); err != nil {
			t.Error(err)
		}
		l.end(t)
		if !errors.Is(l.Over(), kvdbsync.ErrSessionOver) {
			t.Error("it goes on after its end")
		}
	})
}
