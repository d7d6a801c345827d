package grpc_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/northbound/grpc"
)

// The sample has no key that is not known, and shows the defaults.
func TestSample(t *testing.T) {
	var sample, none grpc.Config
	unknown, err := config.Load("../../conf/grpc.conf", &sample)
	if err = errors.Join(err, sample.Complete(), none.Complete()); err != nil || len(unknown) > 0 {
		t.Errorf("unknown %v, error %v", unknown, err)
	}
	sample.CAs = nil // as an empty list
	if !reflect.DeepEqual(sample, none) {
		t.Errorf("grpc.conf says %+v, want the defaults %+v", sample, none)
	}
}

func TestConfigurationThatCannotBeMeant(t *testing.T) {
	for _, c := range []struct {
		config grpc.Config
		want   string
	}{
		{grpc.Config{Network: "udp"}, `network: "udp": expected tcp, tcp4, tcp6, unix, unixpacket`},
		{grpc.Config{Endpoint: "localhost"}, `endpoint: "localhost": expected an address and a port, such as 127.0.0.1:9111`},
		{grpc.Config{Endpoint: "localhost:99999"}, "expected an address and a port"},
		{grpc.Config{Network: "unix"}, "endpoint: expected the path of a socket"},
		{grpc.Config{Network: "unix", Endpoint: "/s", Permission: 789}, "permission: 789: expected a mode with digits from 0 to 7, such as 660"},
		{grpc.Config{Network: "unix", Endpoint: "/s", Permission: 1777}, "permission: 1777: "},
		{grpc.Config{Network: "unix", Endpoint: "/s", Permission: -7}, "permission: -7: "},
		{grpc.Config{Unauthenticated: "all"}, `unauthenticated: "all": expected read or write`},
		{grpc.Config{MaxMsgSize: -1}, "max-msg-size: -1: expected a number up to 1073741824, or 0 for the default"},
		{grpc.Config{MaxConnections: -1}, "max-connections: -1: "},
		{grpc.Config{Cert: "c"}, `cert-file "c", key-file "": expected both or neither`},
		{grpc.Config{CAs: []string{"ca"}}, "ca-files: client certificates need TLS: set cert-file and key-file, too"},
	} {
		if err := c.config.Complete(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %s", c.config, err, c.want)
		}
	}
	for _, c := range []grpc.Config{
		{Endpoint: "0.0.0.0:9111"}, {Endpoint: ":9111", InsecureTransport: true}, {Endpoint: "10.0.0.1:9111", Cert: "c", Key: "k"},
		{Endpoint: "[::1]:9111"}, {Endpoint: "localhost:0", Network: "tcp4"},
		{Endpoint: "0.0.0.0:1", Cert: "c", Key: "k", CAs: []string{"ca"}}, {Endpoint: "/s", Network: "unix", Permission: 777},
		{Disabled: true, Network: "udp"},
		{Permission: 777, ForceSocketRemoval: true}, // without effect, in files of the older agent
	} {
		if err := c.Complete(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
