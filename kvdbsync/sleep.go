package kvdbsync

import (
	"context"
	"time"
)

// Sleep waits for a time. It returns false, at once, when ctx ends before that.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
