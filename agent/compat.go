package agent

import (
	"fmt"
	"log/slog"
	"net"
)

// olderRelease as -compat gives the addresses and rights of that release, where no file says otherwise.
const olderRelease = "vpp-agent-3.5"

// An agentConfig is the content of agent.conf. conf/agent.conf documents its keys for operators.
type agentConfig struct {
	Compat string `yaml:"compat"`
}

// Validate refuses releases that are not known.
func (c agentConfig) Validate() error {
	return refuse(c.Compat != "" && c.Compat != olderRelease, "compat", c.Compat, olderRelease+", or nothing")
}

// readAgent reads agent.conf, which says how all other files are read. The flag comes first.
func (s *settings) readAgent(log *slog.Logger) error {
	var conf agentConfig
	own := s.files(log)
	own.strict = true
	if _, err := own.load("agent-config", s.AgentConfig, &conf); err != nil {
		return fmt.Errorf("%w: %w", errConfig, err)
	}
	if !s.Given["compat"] {
		s.Compat = conf.Compat
	}
	return nil
}

// older reports whether the addresses and rights of the older agent hold.
func (s *settings) older() bool { return s.Compat == olderRelease }

// files returns what reads the configuration files.
func (s *settings) files(log *slog.Logger) files {
	return files{dir: s.ConfigDir, given: s.Given, log: log}
}

// endpoints sets the addresses that no file names. grpcFile says whether grpc.conf exists: without it, the
// older agent had no gRPC that other hosts reach.
func (c *configuration) endpoints(s *settings, grpcFile bool) {
	http, grpc := "127.0.0.1", "127.0.0.1"
	if s.older() {
		http = "0.0.0.0"
	}
	if s.older() && grpcFile {
		grpc = "0.0.0.0"
	}
	// The flags of earlier releases name only a port.
	c.http.File, c.grpc.File = s.HTTPConfig, s.GRPCConfig
	c.http.Address = net.JoinHostPort(http, s.HTTPPort)
	c.grpc.Address = net.JoinHostPort(grpc, s.GRPCPort)
}

// warnProxy says at each start that govpp.conf gives VPP to everybody who reaches HTTP.
func (a *assembly) warnProxy() {
	if a.older() || !a.conf.vpp.Connection.Proxy || a.conf.http.Disabled || a.conf.http.HasUsers() {
		return
	}
	a.Log.Warn("everybody who reaches the HTTP server has VPP's whole binary API; users of http.conf, or proxy-enabled: false of this file prevent that",
		"file", a.VPPConfig, "key", "proxy-enabled", "endpoint", a.conf.http.Endpoint)
}

// warnOlder says at each start what the older rights open, besides the addresses, which their servers name.
func (a *assembly) warnOlder() {
	if !a.older() {
		return
	}
	open := "everybody who reaches HTTP and gRPC can change the network and read secrets"
	if a.conf.vpp.Connection.Proxy {
		open += "; HTTP gives VPP's whole binary API (proxy-enabled of govpp.conf)"
	}
	if a.conf.http.EnableTokenAuth {
		open += "; the user admin of HTTP has the password of vpp-agent 3.5 unless users of http.conf has an admin"
	}
	a.Log.Warn("the addresses and rights of an older agent hold where no file says otherwise", "compat", a.Compat, "open", open)
}
