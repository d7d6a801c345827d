package etcd_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/config"
)

func TestSampleFileSaysEveryKeyAndItsDefault(t *testing.T) {
	t.Parallel()
	var cfg etcd.Config
	unknown, err := config.Load("../../conf/etcd.conf", &cfg)
	if err != nil || len(unknown) > 0 {
		t.Fatalf("unknown keys %v, error %v", unknown, err)
	}
	want := etcd.Config{Endpoints: []string{"127.0.0.1:2379"}, DialTimeout: time.Second, OperationTimeout: 3 * time.Second, ExpandNames: []string{}, SessionTTL: 5}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("the sample says %+v,\nthe defaults are %+v", cfg, want)
	}
	text, err := os.ReadFile("../../conf/etcd.conf")
	if err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[etcd.Config]().Fields() {
		if key := field.Tag.Get("yaml"); !strings.Contains(string(text), key) {
			t.Errorf("the sample does not tell of %s", key)
		}
	}
}

func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		cfg  etcd.Config
		want string
	}{
		"certificate without key": {etcd.Config{CertFile: "c.pem"}, `cert-file "c.pem", key-file "": expected both or neither`},
		"two passwords":           {etcd.Config{Username: "u", Password: "p", PasswordFile: "f"}, `password-file "f": expected no password beside it`},
		"password without user":   {etcd.Config{Password: "p"}, `username: expected one for the password`},
		"empty endpoint":          {etcd.Config{Endpoints: []string{"a:1", " "}}, `endpoints[1] is empty; it must be host:port or a URL`},
		"CA, but clear text":      {etcd.Config{Endpoints: []string{"http://a:1"}, CAFile: "ca.pem"}, `endpoints[0] is http://a:1, which is not encrypted, but ca-file asks for TLS; write https://, or set insecure-transport: true`},
		"mixed schemes":           {etcd.Config{Endpoints: []string{"https://a:1", "b:1", "http://c:1"}}, `endpoints[2] is http://c:1, which is not encrypted, but https://a:1 asks for TLS`},
		"unverified, clear text":  {etcd.Config{Endpoints: []string{"http://a:1"}, InsecureSkip: true}, `but insecure-skip-tls-verify asks for TLS`},
		"clear text in capitals":  {etcd.Config{Endpoints: []string{"HTTP://a:1"}, CAFile: "ca.pem"}, `endpoints[0] is HTTP://a:1, which is not encrypted, but ca-file asks for TLS`},
		"TLS in capitals":         {etcd.Config{Endpoints: []string{"http://b:1", "HTTPS://a:1"}}, `endpoints[0] is http://b:1, which is not encrypted, but HTTPS://a:1 asks for TLS`},
		"password":                {etcd.Config{Endpoints: []string{"http://ann:pw@a:1"}}, `endpoints[0] is http://(secret)@a:1; it must have no user and password`},
		"no port":                 {etcd.Config{Endpoints: []string{"b:1", "localhost"}}, `endpoints[1] is localhost; it must have a port, as in localhost:2379`},
		"no port in a URL":        {etcd.Config{Endpoints: []string{"http://a/"}}, `endpoints[0] is http://a/; it must have a port, as in http://a:2379`},
		"unknown scheme":          {etcd.Config{Endpoints: []string{"b:1", "ftp://a:1"}}, `endpoints[1] is ftp://a:1; a URL must begin with http://, https://, unix://, unixs://`},
		"whole environment":       {etcd.Config{ExpandEnv: true}, `expand-env-variables needs expand-env-names`},
		"negative timeout":        {etcd.Config{DialTimeout: -time.Second}, `dial-timeout: -1s: expected a time that is not negative`},
		"password file missing":   {etcd.Config{Username: "u", PasswordFile: "/nowhere/p"}, `password-file: open /nowhere/p: no such file`},
		"CA missing":              {etcd.Config{CAFile: "/nowhere/ca"}, `ca-file: open /nowhere/ca: no such file`},
		"CA that is none":         {etcd.Config{CAFile: garbage}, `has no certificate: expected PEM`},
		"key pair that is none":   {etcd.Config{CertFile: garbage, KeyFile: garbage}, `: tls: failed to find any PEM data`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for b, err := range etcd.New(test.cfg, slog.New(slog.DiscardHandler)).Watch(t.Context(), root) {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %+v, %v; want %s", b, err, test.want)
				}
			}
			if _, err := etcd.Dial(context.Background(), test.cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Dial: got %v; want %s", err, test.want)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	s := start(t)
	s.put(root+"a", `"$KEYPLANE_TEST_VALUE"`)
	t.Setenv("KEYPLANE_TEST_VALUE", "expanded")
	t.Setenv("ETCD_EXPAND_ENV_VARS", "yes")
	for _, name := range []string{"ETCDV3_ENDPOINTS", "ETCD_ENDPOINTS"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "127.0.0.1:1, "+s.etcd.Addr)
			m := follow(t, etcd.New(etcd.Config{ExpandNames: []string{"KEYPLANE_TEST_VALUE"}}, slog.New(slog.DiscardHandler)))
			m.Await("a", `"expanded"`)
		})
	}
}
