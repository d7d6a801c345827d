package consul

import (
	"context"

	"golang.org/x/time/rate"
)

// The share of Consul's time that a watch may take. A small prefix may be read as often as
// it changes. A prefix of 100,000 keys is sent whole each time: it may be read three times
// at once and then every other second. A prefix of a million keys may be read about every
// 15 seconds.
const (
	bytesPerSecond = 16 << 20
	bytesAtOnce    = 64 << 20
	perAnswer      = 32 << 10 // cost of an answer in addition to its bytes
)

// A pace is a token bucket; one token is one byte of an answer.
type pace struct{ bucket *rate.Limiter }

// newPace allows one burst at once, and then so many bytes a second.
func newPace() pace { return pace{rate.NewLimiter(bytesPerSecond, bytesAtOnce)} }

// wait takes the tokens for an answer, and returns when the next question may be sent.
func (p pace) wait(ctx context.Context, bytes int) error {
	for due := bytes + perAnswer; due > 0; due -= bytesAtOnce {
		if err := p.bucket.WaitN(ctx, min(due, bytesAtOnce)); err != nil {
			return err
		}
	}
	return nil
}
