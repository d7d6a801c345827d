package rest

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// DefaultEndpoint is the address of the server: only this host can reach it.
const DefaultEndpoint = "127.0.0.1:9191"

// defaultWriteTimeout is the default of Config.WriteTimeout.
const defaultWriteTimeout = 2 * time.Minute

// Config is the content of http.conf. The keys are those of existing deployments.
// Durations accept Go's notation.
type Config struct {
	Disabled          bool          `yaml:"disabled"`
	Endpoint          string        `yaml:"endpoint"`          // Defaults to DefaultEndpoint
	ReadTimeout       time.Duration `yaml:"readtimeout"`       // of a whole request. Defaults to 1 min; negative: no limit
	ReadHeaderTimeout time.Duration `yaml:"readheadertimeout"` // Defaults to 10 s
	WriteTimeout      time.Duration `yaml:"writetimeout"`      // of a whole answer. Defaults to 2 min; negative: no limit
	IdleTimeout       time.Duration `yaml:"idletimeout"`       // Defaults to 1 min
	MaxHeaderBytes    int           `yaml:"maxheaderbytes"`    // Defaults to 1 MiB
	MaxConnections    int           `yaml:"max-connections"`   // open at the same time. Defaults to 64
	MaxBodyBytes      int64         `yaml:"max-body-bytes"`    // of a request. Defaults to 8 MiB
	AllowedHosts      []string      `yaml:"allowed-hosts"`     // host names in requests, besides localhost. Defaults to the host of Endpoint

	// These keys ask for protection that this release does not implement. They are
	// refused, because their users rely on being protected.
	ServerCert      string   `yaml:"server-cert-file"`
	ServerKey       string   `yaml:"server-key-file"`
	BasicAuth       []string `yaml:"client-basic-auth"`
	ClientCerts     []string `yaml:"client-cert-files"`
	EnableTokenAuth bool     `yaml:"enable-token-auth"`
}

// ErrProtection reports that the configuration asks for TLS or authentication.
var ErrProtection = errors.New("this release supports neither TLS nor authentication: remove the key and use a loopback address, or set disabled: true")

// Complete sets the defaults and refuses invalid settings.
func (c *Config) Complete() error {
	if c.Disabled {
		return nil
	}
	if c.Endpoint == "" {
		c.Endpoint = DefaultEndpoint
	}
	c.ReadTimeout = cmp.Or(c.ReadTimeout, time.Minute)
	c.ReadHeaderTimeout = cmp.Or(c.ReadHeaderTimeout, 10*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, defaultWriteTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, time.Minute)
	c.MaxConnections = cmp.Or(c.MaxConnections, 64)
	c.MaxBodyBytes = cmp.Or(c.MaxBodyBytes, defaultMaxBody)
	return errors.Join(c.protection(), c.endpoint(), c.limits())
}

// protection refuses the keys of TLS and authentication.
func (c *Config) protection() error {
	var errs []error
	for _, k := range []struct {
		key string
		set bool
	}{
		{"server-cert-file", c.ServerCert != ""}, {"server-key-file", c.ServerKey != ""},
		{"client-basic-auth", len(c.BasicAuth) > 0}, {"client-cert-files", len(c.ClientCerts) > 0},
		{"enable-token-auth", c.EnableTokenAuth},
	} {
		if k.set {
			errs = append(errs, fmt.Errorf("%s: %w", k.key, ErrProtection))
		}
	}
	return errors.Join(errs...)
}

// endpoint checks address and port.
func (c *Config) endpoint() error {
	_, port, err := net.SplitHostPort(c.Endpoint)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("endpoint: %q: expected an address and a port, such as %s", c.Endpoint, DefaultEndpoint)
	}
	return nil
}

// limits refuses negative limits. Zero has been replaced by the default.
func (c *Config) limits() error {
	var errs []error
	for _, k := range []struct {
		key   string
		value time.Duration
	}{
		{"readheadertimeout", c.ReadHeaderTimeout}, {"idletimeout", c.IdleTimeout},
	} {
		if k.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %v; it must not be negative", k.key, k.value))
		}
	}
	for _, k := range []struct {
		key   string
		value int64
	}{
		{"maxheaderbytes", int64(c.MaxHeaderBytes)}, {"max-connections", int64(c.MaxConnections)}, {"max-body-bytes", c.MaxBodyBytes},
	} {
		if k.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d; it must not be negative", k.key, k.value))
		}
	}
	return errors.Join(errs...)
}

// loopback reports whether only this host can reach the endpoint.
func (c *Config) loopback() bool {
	host, _, _ := net.SplitHostPort(c.Endpoint)
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
