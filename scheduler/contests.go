package scheduler

import "github.com/keyplane/keyplane/scheduler/internal/contest"

// Contests decide how long something waits that somebody else changes again and again, before it is put back.
// The scheduler uses them for values. A descriptor uses its own for what no value shows, such as the mark of an
// owner.
type Contests = contest.Contests
