package consul_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/config"
)

func TestSampleFileSaysEveryKeyAndItsDefault(t *testing.T) {
	t.Parallel()
	const sample = "../../conf/consul.conf"
	var cfg consul.Config
	unknown, err := config.Load(sample, &cfg)
	if err != nil || len(unknown) > 0 {
		t.Fatalf("unknown keys %v, error %v", unknown, err)
	}
	want := consul.Config{Address: "localhost:8500", OperationTimeout: 10 * time.Second, ProbeInterval: 10 * time.Second, WaitTime: 5 * time.Minute}
	if cfg != want {
		t.Errorf("the sample says %+v,\nthe defaults are %+v", cfg, want)
	}
	text, err := os.ReadFile(sample)
	must(t, text, err)
	for field := range reflect.TypeFor[consul.Config]().Fields() {
		if key := field.Tag.Get("yaml"); !strings.Contains(string(text), key) {
			t.Errorf("the sample does not tell of %s", key)
		}
	}
}

func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	garbage := filepath.Join(t.TempDir(), "garbage")
	must(t, garbage, os.WriteFile(garbage, []byte("no certificate"), 0o600))
	tests := map[string]struct {
		cfg  consul.Config
		want string
	}{
		"certificate without key": {consul.Config{CertFile: "c.pem"}, `cert-file "c.pem", key-file "": expected both or neither`},
		"two tokens":              {consul.Config{Token: "t", TokenFile: "f"}, `token-file "f": expected no token beside it`},
		"odd address":             {consul.Config{Address: "ftp://x"}, `address: "ftp://x": expected host:port, http://, https:// or unix://`},
		"password":                {consul.Config{Address: "http://ann:pw@x:1"}, `address: "http://(secret)@x:1": expected no user and password in it`},
		"CA, but clear text":      {consul.Config{Address: "http://x", CAFile: "ca.pem"}, `address is http://x, which is not encrypted, but a TLS setting is given`},
		"negative timeout":        {consul.Config{OperationTimeout: -time.Second}, `operation-timeout: -1s: expected a time that is not negative`},
		"long wait":               {consul.Config{WaitTime: time.Hour}, `wait-time: 1h0m0s: expected a time up to 10m0s`},
		"CA missing":              {consul.Config{CAFile: "/nowhere/ca"}, `ca-file: open /nowhere/ca: no such file`},
		"CA that is none":         {consul.Config{CAFile: garbage}, `ca-file: ` + garbage + ` has no certificate: expected PEM`},
		"key pair that is none":   {consul.Config{CertFile: garbage, KeyFile: garbage}, `: tls: failed to find any PEM data`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := ended(t, connect(test.cfg), root); !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want %s", err, test.want)
			}
			if _, err := consul.Dial(test.cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Dial: got %v; want %s", err, test.want)
			}
		})
	}
	missing := consul.Config{TokenFile: "/nowhere/token"}
	if err := ended(t, connect(missing), root); !strings.Contains(err.Error(), "token-file: open /nowhere/token: no such file") {
		t.Errorf("token file missing: %v", err)
	}
}
