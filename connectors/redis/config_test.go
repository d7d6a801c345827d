package redis_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/config"
)

func TestSampleFileSaysEveryKeyAndItsDefault(t *testing.T) {
	t.Parallel()
	var cfg redis.Config
	unknown, err := config.Load("../../conf/redis.conf", &cfg)
	if err != nil || len(unknown) > 0 {
		t.Fatalf("unknown keys %v, error %v", unknown, err)
	}
	want := redis.Config{
		Endpoint: "127.0.0.1:6379", DialTimeout: 5 * time.Second, ReadTimeout: 3 * time.Second, MaxRedirects: 16,
		Pool: redis.Pool{IdleTimeout: 5 * time.Minute},
	}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("the sample says %+v,\nthe defaults are %+v", cfg, want)
	}
	text, err := os.ReadFile("../../conf/redis.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []reflect.Type{reflect.TypeFor[redis.Config](), reflect.TypeFor[redis.TLS](), reflect.TypeFor[redis.Pool]()} {
		for field := range of.Fields() {
			if key := field.Tag.Get("yaml"); key == "" || !strings.Contains(string(text), key) {
				t.Errorf("the sample does not tell of %s", field.Name)
			}
		}
	}
}

// Files of existing deployments are understood, with the key as it was misspelled.
func TestHistoricFiles(t *testing.T) {
	t.Parallel()
	files := map[string]redis.Config{
		"endpoint: 10.0.0.1:6379\ndb: 1\nenable-query-on-slave: true\npassword: p\ntls: {enabled: true, skip-verify: true}\npool: {max-connections: 5, idle-check-frequency: 60000000000}": {
			Endpoint: "10.0.0.1:6379", DB: 1, ReadReplicas: true, Password: "p",
			TLS: redis.TLS{Enabled: true, SkipVerify: true}, Pool: redis.Pool{MaxConnections: 5, IdleCheckFrequency: time.Minute},
		},
		"endpoints: [a:1, b:2]\nmax-rediects: 5\nroute-by-latency: true": {
			Endpoints: []string{"a:1", "b:2"}, MaxRediects: 5, RouteByLatency: true,
		},
		"endpoints: [a:26379]\nmaster-name: mymaster\ndb: 0\nread-timeout: 1s\nwrite-timeout: 2s": {
			Endpoints: []string{"a:26379"}, MasterName: "mymaster", ReadTimeout: time.Second, WriteTimeout: 2 * time.Second,
		},
	}
	for text, want := range files {
		var cfg redis.Config
		unknown, err := config.Parse("redis.conf", []byte(text), &cfg)
		if err != nil || len(unknown) > 0 || cfg.Validate() != nil || !reflect.DeepEqual(cfg, want) {
			t.Errorf("%s:\n%+v, unknown %v, error %v, %v", text, cfg, unknown, err, cfg.Validate())
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
		cfg  redis.Config
		want string
	}{
		"node or cluster":         {redis.Config{Endpoint: "a:1", Endpoints: []string{"b:1"}}, `endpoint "a:1": expected no endpoints beside it`},
		"master without Sentinel": {redis.Config{MasterName: "m"}, `master-name "m": expected endpoints, those of the Sentinels`},
		"database of a Cluster":   {redis.Config{Endpoints: []string{"a:1"}, DB: 2}, `db 2: expected 0, a Cluster has no other`},
		"empty endpoint":          {redis.Config{Endpoints: []string{"a:1", " "}}, `endpoint " ": expected host:port, such as 127.0.0.1:6379`},
		"endpoint without port":   {redis.Config{Endpoint: "localhost"}, `endpoint "localhost": expected host:port, such as 127.0.0.1:6379`},
		"URL with a password":     {redis.Config{Endpoint: "redis://ann:pw@a:1"}, `endpoint "redis://(secret)@a:1": expected host:port`},
		"password":                {redis.Config{Endpoint: "pw@a:1"}, `endpoint "(secret)@a:1": expected no user and password in it`},
		"endpoint as a URL":       {redis.Config{Endpoint: "redis://a:1"}, `endpoint "redis://a:1": expected host:port`},
		"node without port":       {redis.Config{Endpoints: []string{"a:1", "b:"}}, `endpoint "b:": expected host:port`},
		"two passwords":           {redis.Config{Password: "p", PasswordFile: "f"}, `password-file "f": expected no password beside it`},
		"user without password":   {redis.Config{Username: "u"}, `username "u": expected a password for it`},
		"certificate without key": {redis.Config{TLS: redis.TLS{Enabled: true, CertFile: "c"}}, `tls.cert-file "c", tls.key-file "": expected both or neither`},
		"TLS not enabled":         {redis.Config{TLS: redis.TLS{CAFile: "c"}}, `tls: expected enabled: true`},
		"both spellings":          {redis.Config{MaxRedirects: 1, MaxRediects: 2}, `max-rediects 2, max-redirects 1: expected one of them`},
		"negative timeout":        {redis.Config{DialTimeout: -time.Second}, `dial-timeout: -1s: must not be negative`},
		"negative database":       {redis.Config{DB: -1}, `db: -1: must not be negative`},
		"password file missing":   {redis.Config{PasswordFile: "/nowhere/p"}, `password-file: open /nowhere/p: no such file`},
		"CA missing":              {redis.Config{TLS: redis.TLS{Enabled: true, CAFile: "/nowhere/ca"}}, `tls.ca-file: open /nowhere/ca: no such file`},
		"CA that is none":         {redis.Config{TLS: redis.TLS{Enabled: true, CAFile: garbage}}, `has no certificate: expected PEM`},
		"key pair that is none":   {redis.Config{TLS: redis.TLS{Enabled: true, CertFile: garbage, KeyFile: garbage}}, `: tls: failed to find any PEM data`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for b, err := range redis.New(test.cfg, discard()).Watch(t.Context(), root) {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %+v, %v; want %s", b, err, test.want)
				}
			}
			if _, err := redis.Dial(context.Background(), test.cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Dial: got %v; want %s", err, test.want)
			}
		})
	}
}

func TestSettingsWithoutEffect(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cfg  redis.Config
		want string // part of the log; "": nothing is logged
	}{
		{redis.Config{MaxRedirects: 16}, ""},
		{redis.Config{ReadReplicas: true}, "enable-query-on-slave, which is for a Cluster"},
		{redis.Config{RouteByLatency: true}, "route-by-latency, which is for a Cluster"},
		{redis.Config{ReadReplicas: true, RouteByLatency: true, Endpoints: []string{"a:1"}}, ""},
		{redis.Config{SentinelUsername: "u"}, "sentinel-username, which is for Sentinels"},
		{redis.Config{SentinelPassword: "p", Endpoints: []string{"a:1"}}, "sentinel-password, which is for Sentinels"},
		{redis.Config{SentinelPassword: "p", MasterName: "m", Endpoints: []string{"a:1"}}, ""},
	} {
		var log strings.Builder
		redis.New(test.cfg, slog.New(slog.NewTextHandler(&log, nil)))
		if got := log.String(); !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%+v: logged %q, want %q", test.cfg, got, test.want)
		}
	}
}
