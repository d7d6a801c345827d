package bolt_test

import (
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/internal/config"
)

func TestSampleConfiguration(t *testing.T) {
	var got bolt.Config
	unknown, err := config.Load("../../conf/bolt.conf", &got)
	if err != nil || len(unknown) > 0 {
		t.Fatal(unknown, err)
	}
	want := bolt.Config{Path: "/var/lib/keyplane/keys.db", FileMode: 0o600, LockTimeout: 5 * time.Second}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, err := bolt.New(got); err != nil {
		t.Error(err)
	}
}
