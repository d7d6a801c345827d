package consul

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/settingfile"
	"github.com/keyplane/keyplane/internal/tlsfiles"
	"github.com/keyplane/keyplane/internal/userinfo"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A Config is the content of consul.conf. The zero value connects to the Consul agent on
// this host. Unset fields take the value of the environment variables that Consul's own
// tools read (CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN, ...).
type Config struct {
	// Address is host:port, a URL, or unix:///path. Defaults to CONSUL_HTTP_ADDR, or
	// localhost:8500.
	Address string `yaml:"address"`

	Datacenter string `yaml:"datacenter"` // Defaults to the server's datacenter
	Namespace  string `yaml:"namespace"`  // Defaults to CONSUL_NAMESPACE, or none
	Partition  string `yaml:"partition"`  // Defaults to CONSUL_PARTITION, or none

	// An ACL token, or a file that contains it. The file is read for each request; white
	// space at its ends is removed. Default to CONSUL_HTTP_TOKEN_FILE and
	// CONSUL_HTTP_TOKEN.
	Token     string `yaml:"token"`
	TokenFile string `yaml:"token-file"`

	// TLS, 1.2 or newer, is used if a file is named, InsecureSkip is set, the address
	// begins with https://, or CONSUL_HTTP_SSL enables it. The files default to
	// CONSUL_CLIENT_CERT, CONSUL_CLIENT_KEY and CONSUL_CACERT.
	InsecureSkip bool   `yaml:"insecure-skip-tls-verify"`
	CertFile     string `yaml:"cert-file"`
	KeyFile      string `yaml:"key-file"`
	CAFile       string `yaml:"ca-file"`
	ServerName   string `yaml:"tls-server-name"` // name in the server's certificate. Defaults to CONSUL_TLS_SERVER_NAME, or the host

	// OperationTimeout limits one request. A listing may take longer: the timeout limits
	// the time until its first byte, and each pause between bytes. Defaults to 10 s.
	OperationTimeout time.Duration `yaml:"operation-timeout"`
	// ProbeInterval is the time between two probes of a watch. A probe checks that the
	// server is reachable, has a leader, and has reported all changes. Defaults to 10 s.
	ProbeInterval time.Duration `yaml:"probe-interval"`
	// WaitTime is the maximum time that Consul waits for a change before it answers
	// without one. Defaults to 5 min; Consul's maximum is 10 min.
	WaitTime time.Duration `yaml:"wait-time"`
	// AllowStale lets any server answer the questions that wait for changes, and not only
	// the leader. Listings, probes and reads by hand stay consistent.
	AllowStale bool `yaml:"allow-stale"`

	// Bounds limit the size of a server's answers. The agent has one setting for all
	// stores.
	Bounds kvdbsync.Bounds `yaml:"-"`

	// Accepted from existing configuration files, without effect: the store is always
	// listed again after a lost connection.
	ResyncAfterReconnect bool `yaml:"resync-after-reconnect"`
}

// errUser says where a password belongs. Addresses are shown in logs and answers.
var errUser = errors.New("expected no user and password in it: CONSUL_HTTP_AUTH=USER:PASSWORD in the environment has them")

// maxWait is the longest time that Consul keeps a question waiting; it lowers a longer
// one.
const maxWait = 10 * time.Minute

// withDefaults returns the configuration with the documented defaults.
func (c Config) withDefaults() Config {
	c.Bounds = c.Bounds.WithDefaults()
	c.OperationTimeout = cmp.Or(c.OperationTimeout, 10*time.Second)
	c.ProbeInterval = cmp.Or(c.ProbeInterval, 10*time.Second)
	c.WaitTime = cmp.Or(c.WaitTime, 5*time.Minute)
	return c
}

// Validate returns an error for each invalid field.
func (c Config) Validate() error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	scheme, _, hasScheme := strings.Cut(c.Address, "://")
	refuse(hasScheme && scheme != "http" && scheme != "https" && scheme != "unix",
		"address: %q: expected host:port, http://, https:// or unix://", userinfo.Hidden(c.Address))
	refuse(userinfo.In(c.Address), "address: %q: %w", userinfo.Hidden(c.Address), errUser)
	refuse(scheme == "http" && (c.CertFile != "" || c.CAFile != "" || c.InsecureSkip),
		"address is %s, which is not encrypted, but a TLS setting is given (ca-file, cert-file or insecure-skip-tls-verify); write https://", c.Address)
	refuse(c.Token != "" && c.TokenFile != "", "token-file %q: expected no token beside it", c.TokenFile)
	refuse(c.OperationTimeout < 0, "operation-timeout: %v: expected a time that is not negative", c.OperationTimeout)
	refuse(c.ProbeInterval < 0, "probe-interval: %v: expected a time that is not negative", c.ProbeInterval)
	refuse(c.WaitTime < 0 || c.WaitTime > maxWait, "wait-time: %v: expected a time up to %v", c.WaitTime, maxWait)
	return errors.Join(append(errs, tlsfiles.Files{Cert: c.CertFile, Key: c.KeyFile}.Validate(), c.Bounds.Validate())...)
}

// token returns the token of the file, if a file is configured.
func (c Config) token() (string, error) {
	file := c.TokenFile
	if file == "" && c.Token == "" {
		file = os.Getenv("CONSUL_HTTP_TOKEN_FILE")
	}
	if file == "" {
		return cmp.Or(c.Token, os.Getenv("CONSUL_HTTP_TOKEN")), nil
	}
	text, err := settingfile.Read(file)
	if err != nil {
		return "", fmt.Errorf("token-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
