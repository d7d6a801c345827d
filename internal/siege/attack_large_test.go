package siege

import (
	"context"
	"fmt"
	"time"
)

// large puts ten values of 100 MB into Redis, and changes them again and again.
func large(ctx context.Context, t *target) error {
	const values, bytes = 10, 100 << 20
	return t.every(ctx, 2*time.Second, func(n int) error {
		for i := range values {
			// Redis itself fills the value up to that place.
			key := rootOf(t.label) + linux(fmt.Sprintf("large%d", i))
			if err := t.store.SetRange(ctx, key, bytes, fmt.Sprint(n)).Err(); err != nil {
				return unlessOver(ctx, err)
			}
		}
		return nil
	})
}
