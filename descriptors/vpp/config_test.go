package vpp

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/config"
)

// The samples show the defaults, and no key that means nothing, even of those that are
// commented out.
func TestSamples(t *testing.T) {
	var c Config
	var i InterfacesConfig
	for name, into := range map[string]any{"govpp.conf": &c, "vpp-ifplugin.conf": &i} {
		if unknown, err := config.Load("../../conf/"+name, into); err != nil || len(unknown) > 0 {
			t.Errorf("%s: %v, unknown keys %v", name, err, unknown)
		}
	}
	want := Config{Socket: "/run/vpp/api.sock", StatsSocket: "/run/vpp/stats.sock", ProbeInterval: time.Second, ProbeTimeout: 250 * time.Millisecond, RetryTimeout: time.Second}
	if c != want || !reflect.DeepEqual(i, InterfacesConfig{}) {
		t.Errorf("read %+v, %+v", c, i)
	}
}

// A file as it comes with older agents is read without a word.
func TestOlderFile(t *testing.T) {
	const text = `resync-after-reconnect: false
reply-timeout: 1s
connect-via-shm: false
shm-prefix: ""
binapi-socket-path: /run/vpp/api.sock
stats-socket-path: /run/vpp/stats.sock
retry-request-count: 0
retry-request-timeout: 500ms
retry-connect-count: 0
retry-connect-timeout: 1s
proxy-enabled: true
health-check-probe-interval: 1s
health-check-reply-timeout: 250ms
health-check-threshold: 1
trace-enabled: false
`
	unknown, err := config.Parse("govpp.conf", []byte(text), &Config{})
	if err != nil || len(unknown) > 0 {
		t.Errorf("%v, unknown keys %v", err, unknown)
	}
}

func TestConfigurationThatCannotBeMeant(t *testing.T) {
	err := Config{ProbeInterval: -1, ProbeTimeout: -1, RetryTimeout: -1}.Validate()
	for _, key := range []string{"health-check-probe-interval", "health-check-reply-timeout", "retry-connect-timeout"} {
		if err == nil || !strings.Contains(err.Error(), key+": -1ns: expected a duration above zero") {
			t.Errorf("%s is not refused: %v", key, err)
		}
	}
}
