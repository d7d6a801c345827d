package main

import (
	"flag"
	"log/slog"
	"time"
)

// settings are what the command line and the environment say.
type settings struct {
	Label     string
	Socket    string
	ConfigDir string

	EtcdConfig, RedisConfig, ConsulConfig         string
	BoltConfig, FiledbConfig, InitfileConfig      string
	SchedulerConfig, OrchestratorConfig           string
	LinuxIfConfig, LinuxL3Config, LinuxNamespaces string
	VPPConfig, VPPIfConfig                        string
	HTTPConfig, HTTPPort                          string

	OnExit      string // leave or remove
	LogLevel    slog.Level
	StopTimeout time.Duration

	// PublishStatus: into every store, whatever the configuration says.
	PublishStatus bool

	Version bool
	// Given are the flags that the command line or the environment has.
	Given map[string]bool
	// Idle are those of them that have no effect in this release.
	Idle []string
}

// root is what the agent's keys begin with.
func (s *settings) root() string { return "/vnf-agent/" + s.Label + "/" }

// A section is flags that belong together, under a heading in the help.
type section struct {
	title string
	flags []entry
}

// An entry is one flag. Its default is what value holds at first.
type entry struct {
	name, arg, help string
	value           flag.Value
}

// sections is the table of all flags that have an effect; it sets defaults in s.
func (s *settings) sections() []section {
	return []section{
		{"Whose network", []entry{
			{"microservice-label", "LABEL", "declared under the keys /vnf-agent/LABEL/...", label(&s.Label, "vpp1")},
			{"on-exit", "leave|remove", "what happens to the network when the agent is told to stop", choice(&s.OnExit, "leave", "remove")},
		}},
		{"Where it is declared (a store is used if its file is there; one is enough)", []entry{
			{"config-dir", "FOLDER", "where the configuration files below are; a FILE with a slash is a path of its own", text(&s.ConfigDir, ".")},
			{"etcd-config", "FILE", "etcd: endpoints, TLS, user", text(&s.EtcdConfig, "etcd.conf")},
			{"redis-config", "FILE", "Redis: a server, Sentinels or a Cluster, TLS, user", text(&s.RedisConfig, "redis.conf")},
			{"consul-config", "FILE", "Consul: address, ACL token, TLS", text(&s.ConsulConfig, "consul.conf")},
			{"filedb-config", "FILE", "folders or files of YAML or JSON", text(&s.FiledbConfig, "filedb.conf")},
			{"bolt-config", "FILE", "a file of the agent's own, edited with agentctl kvdb", text(&s.BoltConfig, "bolt.conf")},
			{"initfileregistry-config", "FILE", "a file that is read once, at the start: initial-config.yaml, used if that is there", text(&s.InitfileConfig, "initfileregistry.conf")},
			{"socket", "PATH", "where agentctl reaches the agent (default: LABEL.sock in /run/keyplane, or in $XDG_RUNTIME_DIR/keyplane)", text(&s.Socket, "")},
		}},
		{"How it is looked at", []entry{
			{"http-config", "FILE", "the HTTP server", text(&s.HTTPConfig, "http.conf")},
			{"http-port", "PORT", "of the HTTP server on the loopback, unless its file has an endpoint", port(&s.HTTPPort, "9191")},
		}},
		{"How it works", []entry{
			{"kvscheduler-config", "FILE", "the scheduler: transaction log, concurrency", text(&s.SchedulerConfig, "kvscheduler.conf")},
			{"orchestrator-config", "FILE", "the orchestrator: priorities of the stores, grace time", text(&s.OrchestratorConfig, "orchestrator.conf")},
			{"linux-ifplugin-config", "FILE", "Linux interfaces", text(&s.LinuxIfConfig, "linux-ifplugin.conf")},
			{"linux-l3plugin-config", "FILE", "Linux routes and neighbours", text(&s.LinuxL3Config, "linux-l3plugin.conf")},
			{"linux-nsplugin-config", "FILE", "Linux namespaces", text(&s.LinuxNamespaces, "linux-nsplugin.conf")},
			{"govpp-config", "FILE", "the connection to VPP", text(&s.VPPConfig, "govpp.conf")},
			{"vpp-ifplugin-config", "FILE", "VPP interfaces", text(&s.VPPIfConfig, "vpp-ifplugin.conf")},
			{"initial-loglvl", "LEVEL", "debug, info, warn or error", level(&s.LogLevel)},
			{"stop-timeout", "TIME", "how long an orderly end may take", duration(&s.StopTimeout, 5*time.Second)},
		}},
	}
}

// idleFlags are accepted, so that the command lines and environments of existing
// deployments go on working. The agent says when one that is given has no effect.
func idleFlags() []string {
	return []string{
		"aggregator-config", "configurator-config",
		"grpc-config", "grpc-port",
		"kafka-config", "linux-iptablesplugin-config", "logs-config", "msgsync-config",
		"restpapi-config", "start-timeout", "telemetry-config",
		"vpp-aclplugin-config", "vpp-ipfixplugin-config",
	}
}
