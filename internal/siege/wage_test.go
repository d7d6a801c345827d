package siege

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
)

// The attacks go on until each has struck, also where the agent connects late. One that never strikes is an error.
func TestAttacksLastUntilAllHaveStruck(t *testing.T) {
	for _, test := range []struct {
		connects time.Duration // when the agent does
		lasts    time.Duration
		err      string
	}{
		{time.Second, time.Minute, ""},
		{2 * time.Minute, 2 * time.Minute, ""},
		{time.Hour, time.Minute + testkit.Patience, `attack "late" has not struck within `},
	} {
		synctest.Test(t, func(t *testing.T) {
			late := func(ctx context.Context, t *target) error {
				if pause(ctx, test.connects); ctx.Err() == nil {
					t.struck()
				}
				<-ctx.Done()
				return nil
			}
			soon := func(ctx context.Context, t *target) error {
				return t.every(ctx, time.Second, func(int) error { return nil })
			}
			fronts := []*front{newFront(attack{"late", late}), newFront(attack{"soon", soon})}
			begun := time.Now()
			ctx, stop := last(t.Context(), time.Minute, fronts)
			defer stop()
			err := wage(ctx, &target{}, fronts)
			if took := time.Since(begun); took != test.lasts {
				t.Errorf("the attacks took %v; expected %v", took, test.lasts)
			}
			if got := errorText(err); !strings.HasPrefix(got, test.err) || test.err == "" && got != "" || strings.Contains(got, "%!") {
				t.Errorf("the error is %q; expected %q", got, test.err)
			}
		})
	}
}

// errorText returns the text of an error, or nothing.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
