package consul

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// What answers of one size, asked for as often as the pace allows, come to.
func TestPace(t *testing.T) {
	const small, tenThousandKeys, hundredThousandKeys, millionKeys = 300, 2_500_000, 25_000_000, 250_000_000
	tests := []struct {
		bytes    int
		atOnce   int           // answers that need not wait
		apart    time.Duration // of those that follow
		slowness time.Duration // by which it may be off
	}{
		{small, 1900, 2 * time.Millisecond, time.Millisecond},
		{tenThousandKeys, 26, 150 * time.Millisecond, 20 * time.Millisecond},
		{hundredThousandKeys, 2, 1500 * time.Millisecond, 50 * time.Millisecond},
		{millionKeys, 0, 15 * time.Second, time.Second},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			p := newPace()
			begun := time.Now()
			for range tt.atOnce {
				if err := p.wait(t.Context(), tt.bytes); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(begun); took > 0 {
				t.Errorf("%d answers of %d bytes took %v", tt.atOnce, tt.bytes, took)
			}
			for range 200 { // empty the bucket
				if err := p.wait(t.Context(), tt.bytes); err != nil {
					t.Fatal(err)
				}
			}
			begun = time.Now()
			if err := p.wait(t.Context(), tt.bytes); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); (took - tt.apart).Abs() > tt.slowness {
				t.Errorf("answers of %d bytes are %v apart, want %v", tt.bytes, took, tt.apart)
			}
		})
	}
}

func TestPaceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newPace().wait(ctx, 1<<40); err == nil {
		t.Error("waited for nobody")
	}
}
