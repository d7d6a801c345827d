package agent

import (
	"flag"
	"log/slog"
	"slices"
	"time"
)

// settings holds the command line and the environment.
type settings struct {
	// Label is one path element of the keys. Socket is the path of the agent's socket; empty:
	// that of the label. ConfigDir is the folder of configuration files.
	Label     string
	Socket    string
	ConfigDir string

	// Paths, or names of files in ConfigDir. Ports are numbers as text, checked when they are
	// parsed.
	EtcdConfig, RedisConfig, ConsulConfig                        string
	BoltConfig, FiledbConfig, InitfileConfig                     string
	SchedulerConfig, OrchestratorConfig                          string
	LinuxIfConfig, LinuxL3Config, LinuxIPTables, LinuxNamespaces string
	VPPConfig, VPPIfConfig                                       string
	TelemetryConfig, LogsConfig                                  string
	HTTPConfig, HTTPPort                                         string
	GRPCConfig, GRPCPort                                         string

	// Compat is olderRelease, or empty. AgentConfig may set it, too.
	Compat, AgentConfig string

	OnExit      string // leave or remove
	LogLevel    slog.Level
	StopTimeout time.Duration

	// PublishStatus publishes status into every store, regardless of the configuration.
	PublishStatus bool

	// storeFiles are the configuration files of the program's own stores, by name.
	storeFiles map[string]*string
	options    Options

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
	all := s.builtInSections()
	for i := range all {
		all[i].flags = slices.DeleteFunc(all[i].flags, func(e entry) bool { return s.options.lacksFlag(e.name) })
	}
	all = slices.DeleteFunc(all, func(one section) bool { return len(one.flags) == 0 })
	if own := s.ownFlags(); len(own) > 0 {
		all = append(all, section{"Of " + s.options.Name, own})
	}
	return all
}

// ownFlags returns the flags that the program adds: those of its stores, and others.
func (s *settings) ownFlags() (out []entry) {
	for _, kind := range s.options.Stores {
		kind = kind.complete()
		file := new(string)
		s.storeFiles[kind.Name] = file
		out = append(out, entry{kind.Flag, "FILE", kind.Help, text(file, kind.File)})
	}
	if s.options.Flags == nil {
		return out
	}
	own := flag.NewFlagSet(s.options.Name, flag.ContinueOnError)
	s.options.Flags(own)
	own.VisitAll(func(f *flag.Flag) {
		arg, help := flag.UnquoteUsage(f)
		out = append(out, entry{f.Name, arg, help, f.Value})
	})
	return out
}

// builtInSections returns the table of the flags of all built-in parts.
func (s *settings) builtInSections() []section {
	return []section{
		{"Network", []entry{
			{"microservice-label", "LABEL", "name of this agent; its keys begin with /vnf-agent/LABEL/", label(&s.Label, "vpp1")},
			{"on-exit", "leave|remove", "leave or remove the network when the agent stops", choice(&s.OnExit, "leave", "remove")},
		}},
		{"Stores of the declared network (a store is used if its file exists, and never if FILE is DISABLED; clients of gRPC need none)", []entry{
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
			{"compat", "RELEASE", "addresses and rights of an earlier release where no file says otherwise: " + olderRelease, release(&s.Compat)},
			{"agent-config", "FILE", "the agent itself: compat", text(&s.AgentConfig, "agent.conf")},
			{"kvscheduler-config", "FILE", "the scheduler: transaction log, concurrency", text(&s.SchedulerConfig, "kvscheduler.conf")},
			{"orchestrator-config", "FILE", "the orchestrator: priorities of the stores, grace time", text(&s.OrchestratorConfig, "orchestrator.conf")},
			{"linux-ifplugin-config", "FILE", "Linux interfaces", text(&s.LinuxIfConfig, "linux-ifplugin.conf")},
			{"linux-l3plugin-config", "FILE", "Linux routes and neighbours", text(&s.LinuxL3Config, "linux-l3plugin.conf")},
			{"linux-iptablesplugin-config", "FILE", "Linux rule chains (iptables)", text(&s.LinuxIPTables, "linux-iptablesplugin.conf")},
			{"linux-nsplugin-config", "FILE", "Linux namespaces", text(&s.LinuxNamespaces, "linux-nsplugin.conf")},
			{"govpp-config", "FILE", "the connection to VPP", text(&s.VPPConfig, "govpp.conf")},
			{"vpp-ifplugin-config", "FILE", "VPP interfaces", text(&s.VPPIfConfig, "vpp-ifplugin.conf")},
			{"telemetry-config", "FILE", "counters of VPP", text(&s.TelemetryConfig, "telemetry.conf")},
			{"logs-config", "FILE", "log levels of single components, text or JSON", text(&s.LogsConfig, "logs.conf")},
			{"initial-loglvl", "LEVEL", "debug, info, warn or error, unless logs.conf has a level", level(&s.LogLevel)},
			{"stop-timeout", "TIME", "maximum duration of an orderly stop", duration(&s.StopTimeout, 5*time.Second)},
		}},
	}
}

// idleFlags returns flags that are accepted for compatibility with existing deployments, and
// those of parts that the agent is without. The agent logs a warning if one of them is given,
// since it has no effect.
func (s *settings) idleFlags() []string {
	out := []string{
		"aggregator-config", "configurator-config",
		"kafka-config", "msgsync-config",
		"restpapi-config", "start-timeout",
		"vpp-aclplugin-config", "vpp-ipfixplugin-config",
	}
	for _, part := range slices.Sorted(slices.Values(s.options.Without)) {
		out = append(out, parts()[part]...)
	}
	return out
}
