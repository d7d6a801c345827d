package agent

import (
	"flag"
	"log/slog"
	"time"
)

// settings holds the command line and the environment.
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
	GRPCConfig, GRPCPort                          string

	OnExit      string // leave or remove
	LogLevel    slog.Level
	StopTimeout time.Duration

	// PublishStatus publishes status into every store, regardless of the configuration.
	PublishStatus bool

	Version bool
	// Given holds the flags of the command line or the environment.
	Given map[string]bool
	// Idle lists the given flags that have no effect in this release.
	Idle []string
}

// root returns the prefix of the agent's keys.
func (s *settings) root() string { return "/vnf-agent/" + s.Label + "/" }

// A section is a group of flags under a heading in the help.
type section struct {
	title string
	flags []entry
}

// An entry is one flag. The default is the initial content of value.
type entry struct {
	name, arg, help string
	value           flag.Value
}

// sections returns the table of all flags with an effect. It sets defaults in s.
func (s *settings) sections() []section {
	return []section{
		{"Network", []entry{
			{"microservice-label", "LABEL", "name of this agent; its keys begin with /vnf-agent/LABEL/", label(&s.Label, "vpp1")},
			{"on-exit", "leave|remove", "leave or remove the network when the agent stops", choice(&s.OnExit, "leave", "remove")},
		}},
		{"Stores of the declared network (a store is used if its file exists; clients of gRPC need none)", []entry{
			{"config-dir", "FOLDER", "folder of the configuration files below; a FILE with a slash is a path", text(&s.ConfigDir, ".")},
			{"etcd-config", "FILE", "etcd: endpoints, TLS, user", text(&s.EtcdConfig, "etcd.conf")},
			{"redis-config", "FILE", "Redis: a server, Sentinels or a Cluster, TLS, user", text(&s.RedisConfig, "redis.conf")},
			{"consul-config", "FILE", "Consul: address, ACL token, TLS", text(&s.ConsulConfig, "consul.conf")},
			{"filedb-config", "FILE", "folders or files of YAML or JSON", text(&s.FiledbConfig, "filedb.conf")},
			{"bolt-config", "FILE", "local database of the agent, edited with agentctl kvdb", text(&s.BoltConfig, "bolt.conf")},
			{"initfileregistry-config", "FILE", "a file that is read once at the start; default content: initial-config.yaml, if it exists", text(&s.InitfileConfig, "initfileregistry.conf")},
			{"socket", "PATH", "socket for agentctl (default: LABEL.sock in /run/keyplane, or in $XDG_RUNTIME_DIR/keyplane)", text(&s.Socket, "")},
		}},
		{"gRPC", []entry{
			{"grpc-config", "FILE", "the gRPC server: address, TLS, limits", text(&s.GRPCConfig, "grpc.conf")},
			{"grpc-port", "PORT", "port of the gRPC server on the loopback, unless its file sets an endpoint", port(&s.GRPCPort, "9111")},
		}},
		{"HTTP", []entry{
			{"http-config", "FILE", "the HTTP server", text(&s.HTTPConfig, "http.conf")},
			{"http-port", "PORT", "port of the HTTP server on the loopback, unless its file sets an endpoint", port(&s.HTTPPort, "9191")},
		}},
		{"Operation", []entry{
			{"kvscheduler-config", "FILE", "the scheduler: transaction log, concurrency", text(&s.SchedulerConfig, "kvscheduler.conf")},
			{"orchestrator-config", "FILE", "the orchestrator: priorities of the stores, grace time", text(&s.OrchestratorConfig, "orchestrator.conf")},
			{"linux-ifplugin-config", "FILE", "Linux interfaces", text(&s.LinuxIfConfig, "linux-ifplugin.conf")},
			{"linux-l3plugin-config", "FILE", "Linux routes and neighbours", text(&s.LinuxL3Config, "linux-l3plugin.conf")},
			{"linux-nsplugin-config", "FILE", "Linux namespaces", text(&s.LinuxNamespaces, "linux-nsplugin.conf")},
			{"govpp-config", "FILE", "the connection to VPP", text(&s.VPPConfig, "govpp.conf")},
			{"vpp-ifplugin-config", "FILE", "VPP interfaces", text(&s.VPPIfConfig, "vpp-ifplugin.conf")},
			{"initial-loglvl", "LEVEL", "debug, info, warn or error", level(&s.LogLevel)},
			{"stop-timeout", "TIME", "maximum duration of an orderly stop", duration(&s.StopTimeout, 5*time.Second)},
		}},
	}
}

// idleFlags returns flags that are accepted for compatibility with existing deployments.
// The agent logs a warning if one of them is given, since it has no effect.
func idleFlags() []string {
	return []string{
		"aggregator-config", "configurator-config",
		"kafka-config", "linux-iptablesplugin-config", "logs-config", "msgsync-config",
		"restpapi-config", "start-timeout", "telemetry-config",
		"vpp-aclplugin-config", "vpp-ipfixplugin-config",
	}
}
