// Package testkit contains helpers for the tests of several packages: real servers,
// proxies that can break connections, and Need, which skips a test on an unsuitable
// machine. It is test code: no product package imports it.
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
// All processes belong to the test and end with it. A helper that fails ends the test, so
// none returns an error.
package testkit

import (
	"os"
	"testing"
)

// Need skips the test unless ok, and names the missing requirement. With CI=true in the
// environment the test fails instead, so that CI never skips a test silently.
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
