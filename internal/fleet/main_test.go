package fleet_test

import (
	"os"
	"testing"

	"github.com/keyplane/keyplane/internal/fleet"
)

func TestMain(m *testing.M) {
	fleet.ServeProcess()
	os.Exit(m.Run())
}
