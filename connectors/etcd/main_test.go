package etcd_test

import (
	"os"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.RunManyAtOnce()
	os.Exit(m.Run())
}
