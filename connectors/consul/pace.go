package consul

import (
	"context"

	"golang.org/x/time/rate"
)

// How much of Consul's time a watch may take. A small prefix can be asked for as
// often as it changes; one of 100,000 keys, sent whole each time, three times at
// once and then every other second; one of a million every 15 seconds or so.
const (
	bytesPerSecond = 16 << 20
	bytesAtOnce    = 64 << 20
	perAnswer      = 32 << 10 // what an answer costs besides its bytes
)

// A pace is a bucket of bytes that answers are paid from.
type pace struct{ bucket *rate.Limiter }

func newPace() pace { return pace{rate.NewLimiter(bytesPerSecond, bytesAtOnce)} }

// wait pays for an answer, and returns when the next question may be asked.
func (p pace) wait(ctx context.Context, bytes int) error {
	for due := bytes + perAnswer; due > 0; due -= bytesAtOnce {
		if err := p.bucket.WaitN(ctx, min(due, bytesAtOnce)); err != nil {
			return err
		}
	}
	return nil
}
