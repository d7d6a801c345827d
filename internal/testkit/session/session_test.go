package session_test

import (
	"os"
	"testing"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/session"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

func TestScripts(t *testing.T) {
	testkit.Need(t, "scratch namespaces", scratch.Inside())
	session.Run(t, "testdata", "", nil, nil)
}
