package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// diary notes what happens, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// untilEnd is a task that ends when it is told to, after a while.
func (d *diary) untilEnd(name string, while time.Duration) Task {
	return Task{name, func(ctx context.Context) error {
		<-ctx.Done()
		<-time.After(while)
		d.note(name)
		return nil
	}}
}

func (d *diary) last() Task {
	return Task{"last", func(context.Context) error { d.note("last"); return nil }}
}

var errBroken = errors.New("broken")

func broken() Task { return Task{"part", func(context.Context) error { return errBroken }} }

func TestTasksEndFromAbove(t *testing.T) {
	tests := []struct {
		name  string
		below []Task
		above func(d *diary) []Task
		want  []string
		err   error
	}{
		{"as told", nil, func(d *diary) []Task {
			return []Task{d.untilEnd("source", 2*time.Second), d.untilEnd("socket", time.Second)}
		},
			[]string{"socket", "source", "last", "scheduler"}, nil},
		{"one above fails: nothing is removed", nil, func(d *diary) []Task { return []Task{d.untilEnd("source", time.Second), broken()} },
			[]string{"source", "scheduler"}, errBroken},
		{"one below fails", []Task{broken()}, func(d *diary) []Task { return []Task{d.untilEnd("source", time.Second)} },
			[]string{"scheduler", "source"}, errBroken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d diary
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := runTasks(ctx, slog.New(slog.DiscardHandler), append(tt.below, d.untilEnd("scheduler", 0)), tt.above(&d), d.last())
				if !errors.Is(err, tt.err) || tt.err == nil && err != nil {
					t.Errorf("error %v, want %v", err, tt.err)
				}
				if err != nil && err.Error() != "part: broken" {
					t.Errorf("error %q lacks the name of the task", err)
				}
				if !slices.Equal(d.lines, tt.want) {
					t.Errorf("order %v, want %v", d.lines, tt.want)
				}
			})
		})
	}
}

func TestWithin(t *testing.T) {
	tests := []struct {
		name string
		do   func(ctx context.Context) error
		want error
	}{
		{"it fails by itself", broken().Run, errBroken},
		{"it ends in time", (&diary{}).untilEnd("", 4*time.Second).Run, nil},
		{"it does not", (&diary{}).untilEnd("", 6*time.Second).Run, errSlow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := within(ctx, 5*time.Second, func() error { return tt.do(ctx) })
				if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				<-time.After(10 * time.Second) // what was too slow ends as well
			})
		})
	}
}
