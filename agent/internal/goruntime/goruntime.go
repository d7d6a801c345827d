// Package goruntime adapts the Go runtime to an agent that is a process of its own: the number
// of goroutines that run at once, and the memory that the process takes. The variables of the
// environment GOMAXPROCS, GOGC and GOMEMLIMIT leave the choice to the user.
package goruntime

import "runtime"

// longComputations is the number of goroutines that may compute for tens of milliseconds at the
// same time. They make answers to requests (two at once), parse files, decode large values, and
// plan.
const longComputations = 4

// AddThreads lets the goroutines that compute for long run beside as many others as there are
// processors. Otherwise they would occupy all threads of the Go runtime. The runtime takes a
// thread from them after 10 ms, and a change passes through ten goroutines on its way from a store
// to the kernel. The kernel decides sooner: a thread that has slept goes before one that computes.
//
// The number of threads no longer follows a limit of processors that changes while the agent runs.
func AddThreads(env func(string) (string, bool)) {
	if _, set := env("GOMAXPROCS"); !set {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + longComputations)
	}
}
