package bolt_test

import (
	"os"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/connectors/bolt"
)

func TestSampleConfiguration(t *testing.T) {
	f, err := os.Open("../../conf/bolt.conf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	var got bolt.Config
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := bolt.Config{Path: "/var/lib/keyplane/keys.db", FileMode: 0o600, LockTimeout: 5 * time.Second}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, err := bolt.New(got); err != nil {
		t.Error(err)
	}
}
