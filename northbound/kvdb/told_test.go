package kvdb_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// The log tells who has changed a store, and nothing of those who only read.
func TestChangesAreToldWithTheirSender(t *testing.T) {
	var log bytes.Buffer
	socket := filepath.Join(t.TempDir(), "s")
	end := start(t, &kvdb.Server{Socket: socket, Stores: map[string]kvdbsync.Store{"bolt": newBolt(t)}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	c := client(t, socket, "bolt")
	if err := c.Put(t.Context(), "/vnf-agent/vpp1/config/a", []byte("secret")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "/vnf-agent/vpp1/config/a"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := end(); err != nil { // after which all requests have ended
		t.Fatal(err)
	}
	want := fmt.Sprintf(`(pid %d)" request="PUT /v1/stores/bolt/key" key=/vnf-agent/vpp1/config/a status=200`, os.Getpid())
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) || strings.Contains(got, "secret") {
		t.Errorf("the log is\n%swant one line with\n%s", got, want)
	}
}
