// Package testkit is what tests of several packages share: servers of the real
// kind, a TCP connection that can be cut, and one way to say that a test cannot
// run here.
//
//	func TestSomething(t *testing.T) {
//		etcd := testkit.StartEtcd(t, testkit.EtcdOptions{})
//		line := testkit.StartProxy(t, etcd.Addr)
//		... use line.Addr ...
//		line.Set(testkit.Reset)
//		etcd.Kill()
//		etcd.Start()
//	}
//
// Whatever is started belongs to the test and ends with it. A helper that cannot
// do its work fails the test, so nothing here returns an error.
package testkit

import (
	"os"
	"testing"
)

// Need skips the test unless ok, naming what is missing. Where the environment
// has CI=true nothing may be missing, and the test fails instead.
func Need(t testing.TB, what string, ok bool) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("CI") == "true":
		t.Fatalf("this test needs %s, and CI must have it", what)
	default:
		t.Skipf("SKIPPED: this test needs %s", what)
	}
}
