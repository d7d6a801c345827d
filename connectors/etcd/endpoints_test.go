package etcd

import (
	"strings"
	"testing"
)

// All endpoints have the scheme with which the connections are made, in the case that the etcd
// client knows.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cfg  Config
		want string
	}{
		"plain":             {Config{Endpoints: []string{"a:1", "HTTP://b:1"}}, "http://a:1 http://b:1"},
		"a file":            {Config{Endpoints: []string{"a:1"}, CAFile: "ca.pem"}, "https://a:1"},
		"one URL with TLS":  {Config{Endpoints: []string{"a:1", "HttpS://b:1"}}, "https://a:1 https://b:1"},
		"a socket":          {Config{Endpoints: []string{"UNIX:///Run/etcd"}}, "unix:///Run/etcd"},
		"a socket with TLS": {Config{Endpoints: []string{"UNIXS:///run/etcd", "a:1"}}, "unixs:///run/etcd https://a:1"},
		"TLS is forbidden":  {Config{Endpoints: []string{"HTTPS://a:1", "unixs:///run/etcd"}, InsecureTransport: true}, "http://a:1 unix:///run/etcd"},
	} {
		if got := strings.Join(test.cfg.endpoints(), " "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
