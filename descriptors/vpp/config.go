package vpp

import (
	"errors"
	"fmt"
	"time"
)

// Config is the content of govpp.conf.
type Config struct {
	Socket        string        `yaml:"binapi-socket-path"`          // Defaults to /run/vpp/api.sock.
	StatsSocket   string        `yaml:"stats-socket-path"`           // Defaults to /run/vpp/stats.sock.
	ProbeInterval time.Duration `yaml:"health-check-probe-interval"` // Defaults to 1 s.
	ProbeTimeout  time.Duration `yaml:"health-check-reply-timeout"`  // Defaults to 250 ms.
	RetryTimeout  time.Duration `yaml:"retry-connect-timeout"`       // Defaults to 1 s.
	// Proxy lets clients of the HTTP server use VPP's whole binary API; see Plugin.Proxy.
	Proxy bool `yaml:"proxy-enabled"`

	// Accepted from the files of existing deployments, without effect.
	Resync          bool          `yaml:"resync-after-reconnect"`
	ReplyTimeout    time.Duration `yaml:"reply-timeout"`
	SharedMemory    bool          `yaml:"connect-via-shm"`
	SharedPrefix    string        `yaml:"shm-prefix"`
	RequestCount    int           `yaml:"retry-request-count"`
	RequestTimeout  time.Duration `yaml:"retry-request-timeout"`
	ConnectCount    int           `yaml:"retry-connect-count"`
	HealthThreshold int           `yaml:"health-check-threshold"`
	Trace           bool          `yaml:"trace-enabled"`
}

// Validate checks all values.
func (c Config) Validate() error {
	return errors.Join(
		notNegative("health-check-probe-interval", c.ProbeInterval),
		notNegative("health-check-reply-timeout", c.ProbeTimeout),
		notNegative("retry-connect-timeout", c.RetryTimeout),
	)
}

// notNegative returns an error that names the setting, or nil.
func notNegative(key string, d time.Duration) error {
	if d >= 0 {
		return nil
	}
	return fmt.Errorf("%s: %s: expected a duration above zero, such as 1s", key, d)
}

// InterfacesConfig is the content of vpp-ifplugin.conf.
type InterfacesConfig struct {
	// MTU of interfaces that declare none; 0 leaves VPP's default.
	MTU uint32 `yaml:"mtu"`
	// StatusPublishers are the stores that the states of interfaces are published to.
	StatusPublishers []string `yaml:"status-publishers"`
}
