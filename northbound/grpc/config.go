package grpc

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/internal/tlsfiles"
)

// DefaultEndpoint is the address of the server: only this host can reach it.
const DefaultEndpoint = "127.0.0.1:9111"

// Config is the content of grpc.conf. The keys are those of existing deployments.
type Config struct {
	Disabled bool   `yaml:"disabled"` // no address; Server.Private is served
	Endpoint string `yaml:"endpoint"` // address and port, or the path of a socket. Defaults to DefaultEndpoint
	Network  string `yaml:"network"`  // tcp, tcp4, tcp6, unix or unixpacket. Defaults to tcp
	// Permission is the mode of the socket, written with the digits of an octal number: 777.
	// Defaults to 600: only the agent's user can connect. It and ForceSocketRemoval have no effect
	// on an address and port; files of the older agent have them there, too.
	Permission         int  `yaml:"permission"`
	ForceSocketRemoval bool `yaml:"force-socket-removal"` // replace a socket even if a process listens on it

	MaxMsgSize           int    `yaml:"max-msg-size"`           // of a request, in bytes; an answer may have four times as much. Defaults to 4 MiB
	MaxConcurrentStreams uint32 `yaml:"max-concurrent-streams"` // calls of one connection. Defaults to 100
	MaxConnections       int    `yaml:"max-connections"`        // Defaults to 64

	// Unauthenticated says what clients without a certificate may do at an address: Read, or Write, which includes it.
	// Defaults to Write if the file has Endpoint or InsecureTransport, or with Older; otherwise to Read.
	Unauthenticated string `yaml:"unauthenticated"`
	// InsecureTransport is the notation of earlier files for Write.
	InsecureTransport bool     `yaml:"insecure-transport"`
	Cert              string   `yaml:"cert-file"`
	Key               string   `yaml:"key-file"`
	CAs               []string `yaml:"ca-files"` // authorities of client certificates, which are then required

	ExtendedLogging   bool `yaml:"extended-logging"`   // log each call
	PrometheusMetrics bool `yaml:"prometheus-metrics"` // count calls: grpc_server_*

	// Older gives the rights of vpp-agent 3.5: all clients may change the network and read secrets, and the umask
	// alone limits the mode of a socket without Permission.
	Older bool `yaml:"-"`
	// Address is Endpoint where the file has none: it opens nothing. Defaults to DefaultEndpoint.
	Address string `yaml:"-"`
	// File is the name of the file of this configuration, for warnings. Defaults to grpc.conf.
	File string `yaml:"-"`

	openedBy string // the key by which everybody may write at the address; empty: nobody may, or clients have certificates
}

// The values of Config.Unauthenticated.
const (
	Read  = "read"  // see states and values without secrets
	Write = "write" // declare values, too
)

const (
	defaultMsgSize = 4 << 20
	maxMsgSize     = 1 << 30
	defaultStreams = 100
	defaultConns   = 64
	defaultMode    = 600
)

// Complete sets the defaults and refuses invalid settings. It reads no file.
func (c *Config) Complete() error {
	c.MaxMsgSize = cmp.Or(c.MaxMsgSize, defaultMsgSize)
	c.MaxConcurrentStreams = cmp.Or(c.MaxConcurrentStreams, defaultStreams)
	c.MaxConnections = cmp.Or(c.MaxConnections, defaultConns)
	if c.Disabled { // the limits count for the agent's own socket, too
		return c.limits()
	}
	c.Network = cmp.Or(c.Network, "tcp")
	networks := []string{"tcp", "tcp4", "tcp6", "unix", "unixpacket"}
	if !slices.Contains(networks, c.Network) {
		return fmt.Errorf("network: %q: expected %s", c.Network, strings.Join(networks, ", "))
	}
	return errors.Join(c.address(), c.limits(), tlsfiles.Files{Cert: c.Cert, Key: c.Key}.Validate(), c.protection())
}

// address checks the endpoint and the keys of sockets.
func (c *Config) address() error {
	if c.socket() {
		if !c.Older {
			c.Permission = cmp.Or(c.Permission, defaultMode)
		}
		if c.Endpoint == "" {
			return errors.New("endpoint: expected the path of a socket, such as /run/keyplane/grpc.sock")
		}
		_, err := c.mode()
		return err
	}
	c.open()
	c.Endpoint = cmp.Or(c.Endpoint, c.Address, DefaultEndpoint)
	_, port, err := net.SplitHostPort(c.Endpoint)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("endpoint: %q: expected an address and a port, such as %s", c.Endpoint, DefaultEndpoint)
	}
	return nil
}

// open decides what everybody may do at an address. A file that names an endpoint is one of a release in which that
// opened it.
func (c *Config) open() {
	if c.authenticated() || c.openedBy != "" {
		return
	}
	switch {
	case c.Unauthenticated == Write:
		c.openedBy = "unauthenticated"
	case c.Unauthenticated != "":
	case c.InsecureTransport:
		c.openedBy = "insecure-transport"
	case c.Endpoint != "":
		c.openedBy = "endpoint"
	case c.Older:
		c.openedBy = "compat"
	}
	if c.Unauthenticated == "" {
		c.Unauthenticated = Read
		if c.openedBy != "" {
			c.Unauthenticated = Write
		}
	}
}

// mode returns the permission as the number that its digits mean.
func (c *Config) mode() (uint32, error) {
	mode, err := strconv.ParseUint(strconv.Itoa(c.Permission), 8, 9)
	if err != nil {
		return 0, fmt.Errorf("permission: %d: expected a mode with digits from 0 to 7, such as 660", c.Permission)
	}
	return uint32(mode), nil
}

// limits checks the numbers of grpc.conf. 0 stands for the default, which the server sets.
func (c *Config) limits() error {
	var errs []error
	for _, k := range []struct {
		key         string
		value, most int
	}{
		{"max-msg-size", c.MaxMsgSize, maxMsgSize}, {"max-connections", c.MaxConnections, 1 << 16},
	} {
		if k.value < 0 || k.value > k.most {
			errs = append(errs, fmt.Errorf("%s: %d: expected a number up to %d, or 0 for the default", k.key, k.value, k.most))
		}
	}
	return errors.Join(errs...)
}

// protection refuses authorities without TLS, which would verify nobody.
func (c *Config) protection() error {
	if len(c.CAs) > 0 && c.Cert == "" {
		return errors.New("ca-files: client certificates need TLS: set cert-file and key-file, too")
	}
	if c.Unauthenticated != "" && c.Unauthenticated != Read && c.Unauthenticated != Write {
		return fmt.Errorf("unauthenticated: %q: expected %s or %s", c.Unauthenticated, Read, Write)
	}
	return nil
}

func (c *Config) files() tlsfiles.Server {
	return tlsfiles.Server{Cert: c.Cert, Key: c.Key, ClientCAs: c.CAs, Protocols: []string{"h2"}}
}

// socket reports a Unix socket.
func (c *Config) socket() bool { return strings.HasPrefix(c.Network, "unix") }

// authenticated reports that each client has a certificate.
func (c *Config) authenticated() bool { return c.Cert != "" && len(c.CAs) > 0 }

// local reports whether only this host can reach the endpoint.
func (c *Config) local() bool {
	if c.socket() {
		return true
	}
	host, _, _ := net.SplitHostPort(c.Endpoint)
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// readOnly reports that no client may change anything.
func (c *Config) readOnly() bool { return !c.socket() && !c.authenticated() && c.openedBy == "" }

// secrets reports whether clients may read secrets: the permissions of the socket or a
// certificate say who they are. vpp-agent 3.5 showed them to everybody.
func (c *Config) secrets() bool {
	return c.Older && !c.readOnly() || c.socket() || c.authenticated()
}
