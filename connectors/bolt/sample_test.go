package bolt_test

import (
	"os"
	"strings"
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

func TestConfigurationInREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	block, _, found := strings.Cut(after, "```\n")
	var got bolt.Config
	unknown, err := config.Parse("README.md", []byte(block), &got)
	if !found || err != nil || len(unknown) > 0 || got.Path != "/var/lib/keyplane/keys.db" || got.LockTimeout != 5*time.Second {
		t.Errorf("%+v, unknown keys %v, error %v", got, unknown, err)
	}
}
