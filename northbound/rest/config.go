package rest

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/keyplane/keyplane/internal/tlsfiles"
	"github.com/keyplane/keyplane/northbound/rest/internal/auth"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
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
	MaxHeaderBytes    int           `yaml:"maxheaderbytes"`    // Defaults to 16 KiB
	MaxConnections    int           `yaml:"max-connections"`   // open at the same time. Defaults to 64
	MaxBodyBytes      int64         `yaml:"max-body-bytes"`    // of a request. Defaults to 8 MiB
	AllowedHosts      []string      `yaml:"allowed-hosts"`     // host names in requests, besides localhost. Defaults to the host of Endpoint

	// TLS, if a certificate is given.
	ServerCert  string   `yaml:"server-cert-file"`
	ServerKey   string   `yaml:"server-key-file"`
	ClientCerts []string `yaml:"client-cert-files"` // authorities: each client must show a certificate of one of them

	// Users; see package auth.
	BasicAuth       []string      `yaml:"client-basic-auth"` // NAME:PASSWORD, with all permissions
	EnableTokenAuth bool          `yaml:"enable-token-auth"`
	Users           []auth.User   `yaml:"users"`
	HashCost        int           `yaml:"password-hash-cost"` // bcrypt cost of passwords. Defaults to 10
	SignKey         string        `yaml:"sign-key"`           // of tokens; no default
	TokenExpiration time.Duration `yaml:"token-expiration"`   // Defaults to 1 h
	// Unauthenticated says what everybody may do who reaches the endpoint, if there are no users: Read, or Write,
	// which includes it. Defaults to Write if the file has Endpoint or Unprotected, or with Older; otherwise to Read.
	Unauthenticated string `yaml:"unauthenticated"`
	// Unprotected is the notation of earlier files for Write.
	Unprotected bool `yaml:"allow-unauthenticated"`

	// HealthEndpoint is an address of its own for the probes of supervisors: it serves their paths, and
	// nothing else. Defaults to none.
	HealthEndpoint string `yaml:"health-endpoint"`
	// Older gives the rights of vpp-agent 3.5: everybody may change everything, the answers have secrets, any host
	// name may be asked for, and tokens have the user and the key that were built in.
	Older bool `yaml:"-"`
	// Address is Endpoint where the file has none: it opens nothing. Defaults to DefaultEndpoint.
	Address string `yaml:"-"`
	// File is the name of the file of this configuration, for warnings. Defaults to http.conf.
	File string `yaml:"-"`

	// RateLimiter bounds the requests of all clients together, except probes.
	RateLimiter RateLimit `yaml:"rate-limiter"`

	openedBy string // the key by which everybody may write; empty: nobody may, or there are users
}

// The values of Config.Unauthenticated.
const (
	Read  = "read"  // see states, values without secrets, and plans
	Write = "write" // change the network and log levels, too
)

// A RateLimit bounds the number of requests.
type RateLimit struct {
	Limit float64 `yaml:"limit"` // per second. Defaults to 0: no limit
	Burst int     `yaml:"burst"` // at once. Defaults to Limit, and at least 1
}

// Complete sets the defaults and refuses invalid settings.
func (c *Config) Complete() error {
	if c.Disabled {
		return c.healthEndpoint()
	}
	c.open()
	c.Endpoint = cmp.Or(c.Endpoint, c.Address, DefaultEndpoint)
	// Without these limits, slow clients could hold connections for ever.
	c.ReadTimeout = cmp.Or(c.ReadTimeout, time.Minute)
	c.ReadHeaderTimeout = cmp.Or(c.ReadHeaderTimeout, 10*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, defaultWriteTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, time.Minute)
	c.MaxConnections = cmp.Or(c.MaxConnections, 64)
	c.MaxHeaderBytes = cmp.Or(c.MaxHeaderBytes, 16<<10)
	c.MaxBodyBytes = cmp.Or(c.MaxBodyBytes, defaultMaxBody)
	if c.RateLimiter.Limit > 0 && c.RateLimiter.Burst == 0 {
		c.RateLimiter.Burst = max(1, int(c.RateLimiter.Limit))
	}
	return errors.Join(c.protection(), address("endpoint", c.Endpoint), c.healthEndpoint(), c.limits())
}

// open decides what everybody may do. A file that names an endpoint is one of a release in which that opened it.
func (c *Config) open() {
	if c.users().Enabled() || c.openedBy != "" {
		return
	}
	switch {
	case c.Unauthenticated == Write:
		c.openedBy = "unauthenticated"
	case c.Unauthenticated != "":
	case c.Unprotected:
		c.openedBy = "allow-unauthenticated"
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

// users returns the part of the configuration about users.
func (c *Config) users() auth.Config {
	out := auth.Config{
		Basic: c.BasicAuth, Certificates: len(c.ClientCerts) > 0, Tokens: c.EnableTokenAuth, Users: c.Users,
		SignKey: c.SignKey, Expiration: c.TokenExpiration, HashCost: c.HashCost, Groups: endpoint.GroupNames(),
	}
	if c.Older {
		return out.Older()
	}
	return out
}

// HasUsers reports whether requests over TCP need a user.
func (c *Config) HasUsers() bool { return c.users().Enabled() }

// guard returns what tells users apart, or nil if there are none.
func (c *Config) guard() (*auth.Guard, error) {
	if !c.users().Enabled() {
		return nil, nil
	}
	return auth.New(c.users())
}

// tls returns the settings of TLS.
func (c *Config) tls() tlsfiles.Server {
	return tlsfiles.Server{
		Protocols: []string{"http/1.1"},
		Cert:      c.ServerCert, Key: c.ServerKey, ClientCAs: c.ClientCerts,
		CertName: "server-cert-file", KeyName: "server-key-file", CAName: "client-cert-files",
	}
}

// protection checks the files of TLS and the users.
func (c *Config) protection() error {
	_, tlsErr := c.tls().Load()
	_, usersErr := c.guard()
	var errs error
	if c.Unauthenticated != "" && c.Unauthenticated != Read && c.Unauthenticated != Write {
		errs = fmt.Errorf("unauthenticated: %q: expected %s or %s", c.Unauthenticated, Read, Write)
	}
	return errors.Join(tlsErr, usersErr, errs)
}

// healthEndpoint checks the address of the probes, if there is one.
func (c *Config) healthEndpoint() error {
	if c.HealthEndpoint == "" {
		return nil
	}
	if c.HealthEndpoint == c.Endpoint && !c.Disabled {
		return fmt.Errorf("health-endpoint: %q: expected another port than that of endpoint, which serves these paths, too", c.HealthEndpoint)
	}
	return address("health-endpoint", c.HealthEndpoint)
}

// address checks the address and port of a key.
func address(key, endpoint string) error {
	_, port, err := net.SplitHostPort(endpoint)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%s: %q: expected an address and a port, such as %s", key, endpoint, DefaultEndpoint)
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
		{"maxheaderbytes", int64(c.MaxHeaderBytes)},
		{"max-connections", int64(c.MaxConnections)},
		{"max-body-bytes", c.MaxBodyBytes},
		{"rate-limiter.burst", int64(c.RateLimiter.Burst)},
	} {
		if k.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d; it must not be negative", k.key, k.value))
		}
	}
	if c.RateLimiter.Limit < 0 {
		errs = append(errs, fmt.Errorf("rate-limiter.limit is %g; it must not be negative", c.RateLimiter.Limit))
	}
	return errors.Join(errs...)
}

// loopback reports whether only this host can reach the endpoint.
func (c *Config) loopback() bool {
	host, _, _ := net.SplitHostPort(c.Endpoint)
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
