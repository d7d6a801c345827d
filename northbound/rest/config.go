package rest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// DefaultEndpoint is where the server listens.
const DefaultEndpoint = "127.0.0.1:9191"

// Config is the content of http.conf. The keys are those of existing deployments.
type Config struct {
	Disabled          bool          `yaml:"disabled"`
	Endpoint          string        `yaml:"endpoint"`          // Defaults to DefaultEndpoint
	ReadTimeout       time.Duration `yaml:"readtimeout"`       // of a whole request. Defaults to none
	ReadHeaderTimeout time.Duration `yaml:"readheadertimeout"` // Defaults to 10 s
	WriteTimeout      time.Duration `yaml:"writetimeout"`      // of a whole answer. Defaults to none
	IdleTimeout       time.Duration `yaml:"idletimeout"`       // Defaults to 1 min
	MaxHeaderBytes    int           `yaml:"maxheaderbytes"`    // Defaults to 1 MiB
	AllowedHosts      []string      `yaml:"allowed-hosts"`     // names that requests may be for, besides localhost. Defaults to that of Endpoint

	// Whoever says these relies on being protected, which this release cannot do.
	ServerCert      string   `yaml:"server-cert-file"`
	ServerKey       string   `yaml:"server-key-file"`
	BasicAuth       []string `yaml:"client-basic-auth"`
	ClientCerts     []string `yaml:"client-cert-files"`
	EnableTokenAuth bool     `yaml:"enable-token-auth"`
}

// ErrProtection says that a configuration asks for protection that there is not.
var ErrProtection = errors.New("this release has neither TLS nor users: remove the key and keep to the loopback, or say disabled: true")

// Complete sets what is not said, and refuses what makes no sense.
func (c *Config) Complete() error {
	if c.Disabled {
		return nil
	}
	if c.Endpoint == "" {
		c.Endpoint = DefaultEndpoint
	}
	if c.ReadHeaderTimeout == 0 {
		c.ReadHeaderTimeout = 10 * time.Second
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = time.Minute
	}
	return errors.Join(c.protection(), c.endpoint(), c.limits())
}

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

func (c *Config) endpoint() error {
	_, port, err := net.SplitHostPort(c.Endpoint)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("endpoint: %q: want an address and a port, such as %s", c.Endpoint, DefaultEndpoint)
	}
	return nil
}

func (c *Config) limits() error {
	var errs []error
	for _, k := range []struct {
		key   string
		value time.Duration
	}{
		{"readtimeout", c.ReadTimeout}, {"readheadertimeout", c.ReadHeaderTimeout},
		{"writetimeout", c.WriteTimeout}, {"idletimeout", c.IdleTimeout},
	} {
		if k.value < 0 {
			errs = append(errs, fmt.Errorf("%s: %v: want a duration of at least zero, such as 30s", k.key, k.value))
		}
	}
	if c.MaxHeaderBytes < 0 {
		errs = append(errs, fmt.Errorf("maxheaderbytes: %d: want a number of bytes, such as 65536", c.MaxHeaderBytes))
	}
	return errors.Join(errs...)
}

// loopback tells whether only this host reaches the endpoint.
func (c *Config) loopback() bool {
	host, _, _ := net.SplitHostPort(c.Endpoint)
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
