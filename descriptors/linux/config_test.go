package linux

import (
	"fmt"
	"testing"

	"github.com/keyplane/keyplane/internal/config"
)

// The samples show the defaults, and no key that means nothing.
func TestSamples(t *testing.T) {
	load := func(name string, into any) {
		t.Helper()
		unknown, err := config.Load("../../conf/"+name, into)
		if err != nil || len(unknown) > 0 {
			t.Errorf("%s: %v, unknown keys %v", name, err, unknown)
		}
	}
	interfaces, l3, namespaces := InterfacesConfig{Disabled: true}, L3Config{Disabled: true}, NamespacesConfig{Disabled: true, Docker: DockerConfig{Host: "x"}}
	load("linux-ifplugin.conf", &interfaces)
	load("linux-l3plugin.conf", &l3)
	load("linux-nsplugin.conf", &namespaces)
	rules := IPTablesConfig{Disabled: true}
	load("linux-iptablesplugin.conf", &rules)
	rules.Handler.MinRules = 0 // accepted only
	if rules != (IPTablesConfig{Readers: 10}) {
		t.Errorf("read %+v", rules)
	}
	if interfaces != (InterfacesConfig{Readers: 10}) || l3 != (L3Config{Readers: 10}) || namespaces != (NamespacesConfig{}) {
		t.Errorf("read %+v, %+v, %+v", interfaces, l3, namespaces)
	}
}

// An address that no engine can have is a fault of the file, so that the agent does not begin.
func TestAddressOfTheEngine(t *testing.T) {
	for host, want := range map[string]string{
		"":                        "",
		"unix:///run/podman.sock": "",
		"tcp://127.0.0.1:2375":    "",
		"ssh://host":              `docker.host: container engine "ssh://host": expected unix:///PATH or tcp://HOST:PORT`,
		"/var/run/docker.sock":    `docker.host: container engine "/var/run/docker.sock": expected unix:///PATH or tcp://HOST:PORT`,
	} {
		err := NamespacesConfig{Docker: DockerConfig{Host: host}}.Validate()
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%q: %v, want %q", host, err, want)
		}
	}
}
