package etcd

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/settingfile"
	"github.com/keyplane/keyplane/internal/tlsfiles"
	"github.com/keyplane/keyplane/internal/userinfo"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A Config is the content of etcd.conf. The zero value connects to a server on
// this host.
type Config struct {
	// Endpoints are host:port or URLs of the cluster; one that answers is enough. Defaults
	// to those of ETCD_ENDPOINTS or ETCDV3_ENDPOINTS, separated by commas, or
	// 127.0.0.1:2379.
	Endpoints []string `yaml:"endpoints"`

	DialTimeout time.Duration `yaml:"dial-timeout"` // to authenticate. Defaults to 1 s
	// OperationTimeout is the longest silence while an answer is due. A large answer may
	// take longer in total. Defaults to 3 s.
	OperationTimeout time.Duration `yaml:"operation-timeout"`

	// Username and one source of a password, for a cluster with authentication. They
	// default to ETCD_USERNAME and ETCD_PASSWORD. The file is read for each connection;
	// white space at its ends is removed.
	Username     string `yaml:"username"`
	Password     string `yaml:"password"`
	PasswordFile string `yaml:"password-file"`

	// TLS, 1.2 or newer, is used if a file is named, if InsecureSkip is set or if an
	// endpoint begins with https://, unless InsecureTransport forbids it.
	InsecureTransport bool   `yaml:"insecure-transport"`
	InsecureSkip      bool   `yaml:"insecure-skip-tls-verify"`
	CertFile          string `yaml:"cert-file"`
	KeyFile           string `yaml:"key-file"`
	CAFile            string `yaml:"ca-file"`

	// ExpandEnv replaces $NAME and ${NAME} in values, if NAME is in ExpandNames and is set
	// in the agent's environment. Defaults to whether ETCD_EXPAND_ENV_VARS is set.
	ExpandEnv bool `yaml:"expand-env-variables"`
	// ExpandNames are the variables that values may use. People that write values can see
	// their content, so no secret may be in the list. A trailing * stands for any end of
	// the name.
	ExpandNames []string `yaml:"expand-env-names"`

	// AutoCompact is the period of Connector.AutoCompact, which compacts the whole
	// cluster, including the data of other users. Defaults to never.
	AutoCompact time.Duration `yaml:"auto-compact"`

	// SessionTTL is the time in seconds for which a session's lease outlives the agent.
	// Defaults to 5.
	SessionTTL int `yaml:"session-ttl"`

	// Bounds limit the number and the size of the values that the agent reads. The agent
	// has one setting for all stores.
	Bounds kvdbsync.Bounds `yaml:"-"`

	// Accepted from the files of existing deployments, without effect. The agent always
	// starts without its stores, retries by itself, and lists the store after each loss.
	ResyncAfterReconnect bool          `yaml:"resync-after-reconnect"`
	AllowDelayedStart    bool          `yaml:"allow-delayed-start"`
	ReconnectInterval    time.Duration `yaml:"reconnect-interval"`
}

// withDefaults returns the configuration with the documented defaults, some of which come
// from the environment.
func (c Config) withDefaults() Config {
	if len(c.Endpoints) == 0 {
		list := cmp.Or(os.Getenv("ETCD_ENDPOINTS"), os.Getenv("ETCDV3_ENDPOINTS"), "127.0.0.1:2379")
		for one := range strings.SplitSeq(list, ",") {
			c.Endpoints = append(c.Endpoints, strings.TrimSpace(one))
		}
	}
	c.Bounds = c.Bounds.WithDefaults()
	c.DialTimeout = cmp.Or(c.DialTimeout, time.Second)
	c.OperationTimeout = cmp.Or(c.OperationTimeout, 3*time.Second)
	c.SessionTTL = cmp.Or(c.SessionTTL, 5)
	c.Username = cmp.Or(c.Username, os.Getenv("ETCD_USERNAME"))
	if c.PasswordFile == "" {
		c.Password = cmp.Or(c.Password, os.Getenv("ETCD_PASSWORD"))
	}
	c.ExpandEnv = c.ExpandEnv || os.Getenv("ETCD_EXPAND_ENV_VARS") != ""
	return c
}

// Validate returns all faults of the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.Password != "" && c.PasswordFile != "" {
		errs = append(errs, fmt.Errorf("password-file %q: expected no password beside it", c.PasswordFile))
	}
	if c.Username == "" && os.Getenv("ETCD_USERNAME") == "" && (c.Password != "" || c.PasswordFile != "") {
		errs = append(errs, errors.New("username: expected one for the password"))
	}
	full := c.withDefaults()
	for i, e := range full.Endpoints {
		if err := full.checkEndpoint(e); err != nil {
			errs = append(errs, fmt.Errorf("endpoints[%d] is %w", i, err))
		}
	}
	if full.ExpandEnv && len(full.ExpandNames) == 0 {
		errs = append(errs, errors.New("expand-env-variables needs expand-env-names: the environment variables that values may use"))
	}
	errs = append(errs,
		c.tlsFiles().Validate(),
		c.Bounds.Validate(),
		notNegative("dial-timeout", c.DialTimeout),
		notNegative("operation-timeout", c.OperationTimeout),
		notNegative("auto-compact", c.AutoCompact),
		notNegative("session-ttl", time.Duration(c.SessionTTL)*time.Second))
	return errors.Join(errs...)
}

// checkEndpoint returns the fault of an endpoint: what it is and what it must be.
func (c Config) checkEndpoint(e string) error {
	scheme, rest := splitEndpoint(e)
	switch {
	case strings.TrimSpace(e) == "":
		return errors.New("empty; it must be host:port or a URL")
	case userinfo.In(e):
		return fmt.Errorf("%s; it must have no user and password: username and password have them", userinfo.Hidden(e))
	case scheme != "" && !slices.Contains(schemes, scheme):
		return fmt.Errorf("%s; a URL must begin with %s://", e, strings.Join(schemes, "://, "))
	case c.secure() && (scheme == "http" || scheme == "unix"):
		return fmt.Errorf("%s, which is not encrypted, but %s; write https://, or set insecure-transport: true", e, c.whySecure())
	case !strings.HasPrefix(scheme, "unix") && !hasPort(rest):
		return fmt.Errorf("%s; it must have a port, as in %s:2379", e, strings.TrimRight(e, ":/"))
	}
	return nil
}

// hasPort reports whether the part of an endpoint behind the scheme names a port. The etcd client knows
// no usual one.
func hasPort(rest string) bool {
	address, _, _ := strings.Cut(rest, "/")
	_, port, err := net.SplitHostPort(address[strings.LastIndex(address, "@")+1:])
	return err == nil && port != ""
}

// notNegative returns an error that names the setting, or nil.
func notNegative(key string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: %v: expected a time that is not negative", key, d)
	}
	return nil
}

// password returns the password, from the file if one is named.
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

// secure reports whether connections are encrypted. All of them are, or none.
func (c Config) secure() bool { return !c.InsecureTransport && c.whySecure() != "" }

// whySecure returns the setting that requires TLS; empty if there is none.
func (c Config) whySecure() string {
	switch {
	case c.CertFile != "":
		return "cert-file asks for TLS"
	case c.CAFile != "":
		return "ca-file asks for TLS"
	case c.InsecureSkip:
		return "insecure-skip-tls-verify asks for TLS"
	}
	for _, e := range c.Endpoints {
		if scheme, _ := splitEndpoint(e); scheme == "https" || scheme == "unixs" {
			return e + " asks for TLS"
		}
	}
	return ""
}

// schemes are those of endpoints. A connection is encrypted if its scheme ends with s.
var schemes = []string{"http", "https", "unix", "unixs"}

// splitEndpoint returns the scheme of an endpoint and the rest. The scheme is in lower case, as the
// etcd client reads it, and empty for host:port.
func splitEndpoint(e string) (scheme, rest string) {
	scheme, rest, isURL := strings.Cut(e, "://")
	if !isURL {
		return "", e
	}
	return strings.ToLower(scheme), rest
}

// endpoints returns the endpoints, each with its scheme. The etcd client applies the
// scheme of the first one to all. insecure-transport overrules a URL.
func (c Config) endpoints() (out []string) {
	usual := "http"
	if c.secure() {
		usual = "https"
	}
	for _, e := range c.Endpoints {
		scheme, rest := splitEndpoint(e)
		scheme = cmp.Or(scheme, usual)
		if c.InsecureTransport {
			scheme = strings.TrimSuffix(scheme, "s")
		}
		out = append(out, scheme+"://"+rest)
	}
	return out
}

// tlsFiles returns the settings in the form of package tlsfiles.
func (c Config) tlsFiles() tlsfiles.Files {
	return tlsfiles.Files{CA: c.CAFile, Cert: c.CertFile, Key: c.KeyFile, SkipVerify: c.InsecureSkip}
}

// tls returns nil for connections without TLS.
func (c Config) tls() (*tls.Config, error) {
	if !c.secure() {
		return nil, nil
	}
	return c.tlsFiles().Load()
}
