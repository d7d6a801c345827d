package testkit

import (
	"flag"
	"time"
)

// Patience is the time limit of a wait for something that must happen. It only ends a test that
// would wait for ever, so it is long enough for a machine with 40 other busy processes. A test
// that measures a limit of the product compares with that limit instead.
const Patience = 5 * time.Minute

// Until polls until ok returns true, and reports whether it did before Patience was over. It is for what nobody tells of, such as
// the state of another process. A pause is four times as long as ok took, so that who waits leaves the processors to what it waits for.
func Until(ok func() bool) bool {
	for late := time.Now().Add(Patience); ; {
		began := time.Now()
		if ok() {
			return true
		}
		if time.Now().After(late) {
			return false
		}
		<-time.After(min(max(4*time.Since(began), shortestPause), longestPause))
	}
}

// The pauses of Until.
const (
	shortestPause = 2 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

// askTimeout bounds one question whether a server serves. An unanswered question is repeated.
const askTimeout = 10 * time.Second

// RunManyAtOnce runs eight tests of a package in parallel on any number of processors. It
// is for packages whose tests mostly wait for servers. Call it first in TestMain; the flag
// -parallel overrides it.
func RunManyAtOnce() {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err) // the flag exists in each test program
	}
}
