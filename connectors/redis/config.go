package redis

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/settingfile"
	"github.com/keyplane/keyplane/internal/userinfo"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A Config is the content of redis.conf. The zero value connects to a server on this host.
// With MasterName, Endpoints are Sentinels that manage the master. Without it, Endpoints
// are nodes of a Cluster. Endpoint is one server.
type Config struct {
	// Endpoint is the host:port of one server. Defaults to 127.0.0.1:6379.
	Endpoint string `yaml:"endpoint"`
	// Endpoints are the host:port of Sentinels, or of some nodes of a Cluster. One
	// reachable endpoint is enough.
	Endpoints []string `yaml:"endpoints"`
	// MasterName is the master's name in the Sentinels' configuration.
	MasterName string `yaml:"master-name"`
	// DB is the number of the database; a Cluster has only 0. Defaults to 0.
	DB int `yaml:"db"`

	// Username belongs to the access control list. Set at most one source of a password.
	// The file is read for each connection; white space at its ends is removed.
	Username     string `yaml:"username"`
	Password     string `yaml:"password"`
	PasswordFile string `yaml:"password-file"`
	// SentinelUsername and SentinelPassword are for the Sentinels themselves.
	SentinelUsername string `yaml:"sentinel-username"`
	SentinelPassword string `yaml:"sentinel-password"`

	TLS TLS `yaml:"tls"` // for all connections, including those to Sentinels

	DialTimeout  time.Duration `yaml:"dial-timeout"`  // Defaults to 5 s
	ReadTimeout  time.Duration `yaml:"read-timeout"`  // maximum pause within an answer. Defaults to 3 s
	WriteTimeout time.Duration `yaml:"write-timeout"` // Defaults to ReadTimeout

	Pool Pool `yaml:"pool"` // of a Client

	// ReadReplicas lets a Client of a Cluster read from replicas, which may lag behind.
	// RouteByLatency reads from the nearest node. A watch reads only masters.
	ReadReplicas   bool `yaml:"enable-query-on-slave"`
	RouteByLatency bool `yaml:"route-by-latency"`
	// MaxRedirects is the maximum number of redirects of a request in a Cluster. Defaults
	// to MaxRediects, the old misspelled name of the key, or 16.
	MaxRedirects int `yaml:"max-redirects"`
	MaxRediects  int `yaml:"max-rediects"`

	// Bounds limit the size of a server's answers. The agent has one setting for all
	// stores.
	Bounds kvdbsync.Bounds `yaml:"-"`
}

// TLS configures the encryption of connections. Files are read for each connection.
type TLS struct {
	Enabled bool `yaml:"enabled"`
	// Accepts any certificate. Another host could then read the password and the
	// configuration.
	SkipVerify bool   `yaml:"skip-verify"`
	CertFile   string `yaml:"cert-file"` // the agent's certificate, with KeyFile
	KeyFile    string `yaml:"key-file"`
	CAFile     string `yaml:"ca-file"` // Defaults to the system's authorities
}

// A Pool bounds the connections of a Client to one server.
type Pool struct {
	MaxConnections int           `yaml:"max-connections"` // Defaults to 10 for each processor
	BusyTimeout    time.Duration `yaml:"busy-timeout"`    // maximum wait for a connection. Defaults to ReadTimeout and 1 s
	IdleTimeout    time.Duration `yaml:"idle-timeout"`    // Defaults to 5 min

	// Accepted from existing configuration files, without effect: connections are checked
	// when they are used.
	IdleCheckFrequency time.Duration `yaml:"idle-check-frequency"`
}

// withDefaults returns the configuration with the documented defaults. A pool waits a
// little longer than a read takes at most, so that the error of the read is the one that
// is seen.
func (c Config) withDefaults() Config {
	if len(c.Endpoints) == 0 {
		c.Endpoint = cmp.Or(c.Endpoint, "127.0.0.1:6379")
	}
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 3*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, c.ReadTimeout)
	c.Pool.BusyTimeout = cmp.Or(c.Pool.BusyTimeout, c.ReadTimeout+time.Second)
	c.Pool.IdleTimeout = cmp.Or(c.Pool.IdleTimeout, 5*time.Minute)
	c.Bounds = c.Bounds.WithDefaults()
	c.MaxRedirects = cmp.Or(c.MaxRedirects, c.MaxRediects, 16)
	return c
}

// sentinels reports whether the endpoints are those of Sentinels.
func (c Config) sentinels() bool { return c.MasterName != "" }

// cluster reports whether the endpoints are those of a Redis Cluster.
func (c Config) cluster() bool { return c.MasterName == "" && len(c.Endpoints) > 0 }

// where names the servers in logs and errors.
func (c Config) where() string {
	switch {
	case c.sentinels():
		return "redis master " + c.MasterName
	case c.cluster():
		return "redis cluster " + strings.Join(c.Endpoints, ",")
	}
	return "redis " + c.Endpoint
}

// Validate returns an error for each invalid field.
func (c Config) Validate() error {
	return errors.Join(append(c.contradictions(),
		c.TLS.files().Validate(),
		c.Bounds.Validate(),
		notNegative("db", c.DB),
		notNegative("max-redirects", c.MaxRedirects),
		notNegative("max-rediects", c.MaxRediects),
		notNegative("dial-timeout", c.DialTimeout),
		notNegative("read-timeout", c.ReadTimeout),
		notNegative("write-timeout", c.WriteTimeout),
		notNegative("pool.max-connections", c.Pool.MaxConnections),
		notNegative("pool.busy-timeout", c.Pool.BusyTimeout),
		notNegative("pool.idle-timeout", c.Pool.IdleTimeout))...)
}

// contradictions returns an error for each pair of settings that cannot both be meant.
// Nobody should have to find out which of them wins.
func (c Config) contradictions() (errs []error) {
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(c.Endpoint != "" && len(c.Endpoints) > 0, "endpoint %q: expected no endpoints beside it", userinfo.Hidden(c.Endpoint))
	refuse(c.sentinels() && len(c.Endpoints) == 0, "master-name %q: expected endpoints, those of the Sentinels", c.MasterName)
	refuse(c.cluster() && c.DB != 0, "db %d: expected 0, a Cluster has no other", c.DB)
	refuse(c.Password != "" && c.PasswordFile != "", "password-file %q: expected no password beside it", c.PasswordFile)
	refuse(c.Username != "" && c.Password == "" && c.PasswordFile == "", "username %q: expected a password for it", c.Username)
	refuse(!c.TLS.Enabled && c.TLS != (TLS{}), "tls: expected enabled: true for the other keys to have an effect")
	refuse(c.MaxRedirects != 0 && c.MaxRediects != 0 && c.MaxRedirects != c.MaxRediects, "max-rediects %d, max-redirects %d: expected one of them", c.MaxRediects, c.MaxRedirects)
	for _, e := range append([]string{cmp.Or(c.Endpoint, "127.0.0.1:6379")}, c.Endpoints...) {
		refuse(!isAddress(e), "endpoint %q: expected host:port, such as 127.0.0.1:6379", userinfo.Hidden(e))
		refuse(isAddress(e) && userinfo.In(e), "endpoint %q: expected no user and password in it: username and password have them", userinfo.Hidden(e))
	}
	return errs
}

// isAddress reports whether an endpoint is host:port, or the path of a socket of this host. Redis has a
// usual port, but no client assumes it.
func isAddress(e string) bool {
	_, port, err := net.SplitHostPort(e)
	return err == nil && port != "" || strings.HasPrefix(e, "/")
}

// unused returns the keys that are set and have no effect. They are no errors: files of the older agent may
// have them.
func (c Config) unused() (keys []string) {
	for key, isUnused := range map[string]bool{
		"enable-query-on-slave, which is for a Cluster": c.ReadReplicas && !c.cluster(),
		"route-by-latency, which is for a Cluster":      c.RouteByLatency && !c.cluster(),
		"sentinel-username, which is for Sentinels":     c.SentinelUsername != "" && !c.sentinels(),
		"sentinel-password, which is for Sentinels":     c.SentinelPassword != "" && !c.sentinels(),
	} {
		if isUnused {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// notNegative returns an error that names the setting, or nil.
func notNegative[T int | time.Duration](key string, n T) error {
	if n < 0 {
		return fmt.Errorf("%s: %v: must not be negative", key, n)
	}
	return nil
}

// password returns the password of the file, if a file is configured.
func (c Config) password() (string, error) {
	if c.PasswordFile == "" {
		return c.Password, nil
	}
	text, err := settingfile.Read(c.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("password-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
