package rest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/northbound/rest/internal/auth"
)

func TestSample(t *testing.T) {
	var c Config
	unknown, err := config.Load("../../conf/http.conf", &c)
	if err != nil || len(unknown) > 0 {
		t.Fatalf("unknown %v, error %v", unknown, err)
	}
	if c.MaxHeaderBytes != 16<<10 {
		t.Errorf("maxheaderbytes %d, want 16 KiB", c.MaxHeaderBytes)
	}
	c.MaxHeaderBytes = 0
	var defaults Config
	if err := errors.Join(c.Complete(), defaults.Complete()); err != nil {
		t.Fatal(err)
	}
	if got, want := c, defaults; got.Unauthenticated != want.Unauthenticated || got.openedBy != want.openedBy || got.Endpoint != want.Endpoint || got.ReadHeaderTimeout != want.ReadHeaderTimeout ||
		got.IdleTimeout != want.IdleTimeout || got.MaxConnections != want.MaxConnections || got.MaxBodyBytes != want.MaxBodyBytes || got.ReadTimeout != want.ReadTimeout || got.WriteTimeout != want.WriteTimeout {
		t.Errorf("the sample says %+v, want the defaults %+v", got, want)
	}
}

func TestConfig(t *testing.T) {
	tests := []struct {
		name string
		c    Config
		says []string // nothing: it is right
	}{
		{"nothing", Config{}, nil},
		{"everywhere", Config{Endpoint: "0.0.0.0:9191"}, nil},
		{"probes", Config{HealthEndpoint: "0.0.0.0:9192"}, nil},
		{"only probes", Config{Disabled: true, Endpoint: "127.0.0.1:1", HealthEndpoint: "127.0.0.1:1"}, nil},
		{"probes without a port", Config{Disabled: true, HealthEndpoint: "localhost"}, []string{`health-endpoint: "localhost"`, DefaultEndpoint}},
		{"probes at the endpoint", Config{HealthEndpoint: DefaultEndpoint}, []string{`health-endpoint: "127.0.0.1:9191": expected another port`}},
		{"older tokens", Config{EnableTokenAuth: true, Older: true}, nil},
		{"everywhere, on purpose", Config{Endpoint: "0.0.0.0:9191", Unprotected: true}, nil},
		{"no such right", Config{Unauthenticated: "all"}, []string{`unauthenticated: "all": expected read or write`}},
		{"everywhere, with users", Config{Endpoint: "0.0.0.0:9191", BasicAuth: []string{"u:secret"}}, nil},
		{"IPv6", Config{Endpoint: "[::1]:80"}, nil},
		{"no port", Config{Endpoint: "localhost"}, []string{`endpoint: "localhost"`, DefaultEndpoint}},
		{"bad port", Config{Endpoint: "localhost:x"}, []string{"endpoint"}},
		{"no limit of time", Config{ReadTimeout: -1, WriteTimeout: -1}, nil},
		{"negative times", Config{ReadHeaderTimeout: -time.Second, IdleTimeout: -1}, []string{"readheadertimeout is -1s", "idletimeout"}},
		{"negative numbers", Config{MaxHeaderBytes: -1, MaxConnections: -2, MaxBodyBytes: -3}, []string{"maxheaderbytes is -1", "max-connections is -2", "max-body-bytes is -3"}},
		{"files of TLS", Config{ServerCert: "/nowhere", ServerKey: "/nowhere"}, []string{"server-cert-file: open /nowhere", "server-key-file: open /nowhere"}},
		{"clients without TLS", Config{ClientCerts: []string{"ca"}}, []string{"client-cert-files: a server that verifies clients needs server-cert-file and server-key-file"}},
		{"no password", Config{BasicAuth: []string{"secret"}}, []string{"client-basic-auth[0]: expected NAME:PASSWORD"}},
		{"nobody", Config{EnableTokenAuth: true}, []string{"sign-key has 0 bytes", "users is required"}},
		{"users without logins", Config{Users: []auth.User{{Name: "ann", Password: "secret"}}}, nil},
		{"negative rate", Config{RateLimiter: RateLimit{Limit: -1, Burst: -2}}, []string{"rate-limiter.limit is -1", "rate-limiter.burst is -2"}},
		{"disabled", Config{EnableTokenAuth: true, Disabled: true}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.c.Complete()
			if (err == nil) != (tt.says == nil) {
				t.Fatalf("error %v", err)
			}
			for _, s := range tt.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v does not say %s", err, s)
				}
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%v tells a secret", err)
			}
		})
	}
}

// An invalid address is named once.
func TestInvalidEndpoint(t *testing.T) {
	err := (&Config{Endpoint: "127.0.0.1"}).Complete()
	if want := `endpoint: "127.0.0.1": expected an address and a port, such as 127.0.0.1:9191`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestLoopback(t *testing.T) {
	for endpoint, want := range map[string]bool{"127.0.0.1:1": true, "127.1.2.3:1": true, "[::1]:1": true, "localhost:1": true, "0.0.0.0:1": false, ":1": false, "[::]:1": false, "example.org:1": false} {
		if got := (&Config{Endpoint: endpoint}).loopback(); got != want {
			t.Errorf("%s: %v", endpoint, got)
		}
	}
}
