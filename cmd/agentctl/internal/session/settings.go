package session

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/internal/reach"
)

// settings are the merged flags, environment variables and configuration file, in this order
// of precedence. The tags are the keys of the file.
type settings struct {
	Endpoints   []string      `yaml:"etcd-endpoints"`    // Defaults to 127.0.0.1:2379
	DialTimeout time.Duration `yaml:"etcd-dial-timeout"` // Defaults to that of the connector
	// Of the connection to etcd. HTTPTLS is that of the agent's HTTP server.
	TLS     tlsSettings   `yaml:"kvdb-tls"`
	Label   string        `yaml:"service-label"` // Defaults to vpp1
	Timeout time.Duration `yaml:"timeout"`       // Defaults to 2 min
	Store   string        `yaml:"store"`         // Defaults to etcd if endpoints are given, else the one of the agent, else etcd
	Socket  string        `yaml:"socket"`        // Defaults to reach.DefaultSocket

	// The address of the agent's HTTP server. If Socket is given and neither Host nor
	// HTTPPort is, the socket is used instead. Without all three, the socket of the label is
	// used if an agent listens there. The same socket serves gRPC, unless GRPCPort or GRPCSocket
	// is given.
	Host     string      `yaml:"host"`            // Defaults to 127.0.0.1
	HTTPPort int         `yaml:"http-port"`       // Defaults to 9191
	HTTPAuth string      `yaml:"http-basic-auth"` // user:password. Defaults to none
	HTTPTLS  tlsSettings `yaml:"http-tls"`

	HTTPAuthFile string `yaml:"http-basic-auth-file"` // holds user:password. Defaults to none

	Insecure bool `yaml:"insecure-tls"` // use TLS without verifying certificates, for HTTP, gRPC and etcd

	GRPCPort int         `yaml:"grpc-port"` // of the agent's gRPC server, at Host. Defaults to 9111
	GRPCTLS  tlsSettings `yaml:"grpc-tls"`
	// The path of a Unix socket of the gRPC server ("network: unix" in grpc.conf), instead of Host
	// and GRPCPort. Defaults to none.
	GRPCSocket string `yaml:"grpc-socket"`

	// Accepted from configuration files of other clients, without effect in this release.
	APIVersion string `yaml:"ligato-api-version"`

	file, dir  string // location of the configuration file
	bySocket   bool   // query the agent through its socket
	byHTTP     bool   // the HTTP server was chosen: by address, or by settings that only it has
	grpcGiven  bool   // the port or the socket of the gRPC server was chosen; it is not the default
	grpcName   string // host and port, or the path of the socket, once DialGRPC was called; for messages
	ofAgent    bool   // Store is one of the agent, reached through its socket
	labelGiven bool   // the user has chosen a label; it is not the default
}

// Flags defines the flags of all commands. Their defaults are empty, and complete sets the
// real ones: an empty flag must not hide the environment or the file.
func (s *Session) Flags(f *pflag.FlagSet) {
	f.StringSliceP("etcd-endpoints", "e", nil, "etcd servers (env ETCD_ENDPOINTS, default 127.0.0.1:2379)")
	f.String("service-label", "", "label of the agent that short keys belong to (env MICROSERVICE_LABEL, default: vpp1, but the label of the agent if --socket, --host or --http-port names it)")
	f.String("store", "", "store of the keys: etcd, or bolt, consul, filedb or redis of the agent (default etcd if its servers are given, else that of the agent; of several, reading commands use all, and others the one with the highest priority that can be written; or etcd if the agent has none)")
	f.String("socket", "", "socket of the agent, for all commands if neither host nor port is given (env AGENTCTL_SOCKET; default, if an agent listens there: "+reach.DefaultSocket("LABEL")+")")
	f.StringP("host", "H", "", "host of the agent, for commands that query it (env AGENT_HOST, default 127.0.0.1)")
	f.Int("http-port", 0, "port of the agent's HTTP server (default 9191)")
	f.Int("grpc-port", 0, "port of the agent's gRPC server, for commands that change or watch its configuration (default 9111, if no agent listens on the socket)")
	f.String("grpc-socket", "", "Unix socket of the agent's gRPC server, if its grpc.conf has \"network: unix\"; replaces --host and --grpc-port")
	f.String("http-basic-auth", "", "USER:PASSWORD for its HTTP server (env AGENTCTL_HTTP_BASIC_AUTH); visible in the list of processes, unlike a file or the environment")
	f.String("http-basic-auth-file", "", "file with USER:PASSWORD for its HTTP server (env AGENTCTL_HTTP_BASIC_AUTH_FILE)")
	f.Bool("insecure-tls", false, "use TLS for HTTP, gRPC and etcd, and do not verify certificates")
	f.Duration("timeout", 0, "timeout of the command (default 2m)")
	f.StringVar(&s.file, "config", "", "configuration file, in YAML")
	f.StringVar(&s.dir, "config-dir", "", "folder with the configuration file config.yaml (default: ~/.agentctl)")
	f.BoolP("debug", "D", false, "")
	f.StringP("log-level", "l", "", "")
	for _, idle := range []string{"debug", "log-level"} {
		f.Lookup(idle).Hidden = true
	}
}

// TimeoutFlag adds the flag -t to a command that has another default timeout than the others. It
// replaces the flag --timeout of all commands.
func TimeoutFlag(cmd *cobra.Command, usual time.Duration) {
	d := patience(usual)
	cmd.Flags().VarP(&d, "timeout", "t", "timeout of the command")
}

// A patience is a duration as a flag. A number without a unit is seconds, as import of vpp-agent 3.5 has it.
type patience time.Duration

// Set implements pflag.Value.
func (p *patience) Set(text string) error {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		*p = patience(time.Duration(seconds) * time.Second)
		return nil
	}
	d, err := time.ParseDuration(text)
	*p = patience(d)
	return err
}

// String implements pflag.Value.
func (p *patience) String() string { return time.Duration(*p).String() }

// Type is the type by which the settings read the flag.
func (p *patience) Type() string { return "duration" }

// Load merges file, environment and flags, later ones last, and validates the result.
func (s *Session) Load(f *pflag.FlagSet) error {
	if err := s.loadFile(); err != nil {
		return err
	}
	s.fromEnvironment(f.Changed("socket"))
	if f.Changed("grpc-port") {
		s.GRPCSocket = "" // of the configuration file
	}
	if f.Changed("grpc-socket") {
		s.GRPCPort = 0
	}
	if f.Changed("socket") {
		s.Store, s.Endpoints = "", nil // a socket names one agent; the environment's etcd is not meant
	}
	if f.Changed("etcd-endpoints") {
		s.Store = "etcd"
	}
	// All mistakes are reported at once.
	err := errors.Join(
		given(f, "etcd-endpoints", &s.Endpoints, f.GetStringSlice),
		given(f, "service-label", &s.Label, f.GetString),
		given(f, "store", &s.Store, f.GetString),
		given(f, "socket", &s.Socket, f.GetString),
		given(f, "host", &s.Host, f.GetString),
		given(f, "http-port", &s.HTTPPort, f.GetInt),
		given(f, "grpc-port", &s.GRPCPort, f.GetInt),
		given(f, "grpc-socket", &s.GRPCSocket, f.GetString),
		s.authFromFlags(f),
		given(f, "insecure-tls", &s.Insecure, f.GetBool),
		given(f, "timeout", &s.Timeout, f.GetDuration),
	)
	if s.Timeout == 0 {
		s.Timeout, _ = f.GetDuration("timeout") // the default of a command with a TimeoutFlag
	}
	return errors.Join(err, s.readAuth(), s.complete())
}

// fromEnvironment merges the environment. A socket on the command line is meant for all requests,
// also those by HTTP, so AGENT_HOST does not count then.
func (s *Session) fromEnvironment(bySocket bool) {
	if label, ok := s.Env("MICROSERVICE_LABEL"); ok && label != "" {
		s.Label = label
	}
	if list, ok := s.Env("ETCD_ENDPOINTS"); ok && list != "" {
		s.Endpoints = strings.Split(list, ",")
	}
	if host, ok := s.Env("AGENT_HOST"); ok && host != "" && !bySocket {
		s.Host = host
	}
	if socket, ok := s.Env("AGENTCTL_SOCKET"); ok && socket != "" {
		s.Socket = socket
	}
	s.authFromEnvironment()
}

// given stores the value of a flag that is on the command line. Other flags leave into
// unchanged.
func given[T any](f *pflag.FlagSet, name string, into *T, get func(string) (T, error)) error {
	if !f.Changed(name) {
		return nil
	}
	v, err := get(name)
	*into = v
	return err
}

// complete sets the defaults, and validates the result.
func (s *settings) complete() error {
	if s.Store == "" && len(s.Endpoints) > 0 {
		s.Store = "etcd"
	}
	if len(s.Endpoints) == 0 {
		s.Endpoints = []string{"127.0.0.1:2379"}
	}
	// Before the defaults are filled in, which would make all three look given.
	s.bySocket = s.Socket != "" && s.Host == "" && s.HTTPPort == 0
	s.byHTTP = s.Host != "" || s.HTTPPort != 0 || s.HTTPAuth != "" || s.httpTLS().enabled()
	s.labelGiven = s.Label != ""
	s.Label = cmp.Or(s.Label, "vpp1")
	s.Host = cmp.Or(s.Host, "127.0.0.1")
	s.HTTPPort = cmp.Or(s.HTTPPort, 9191)
	s.grpcGiven = s.GRPCPort != 0 || s.GRPCSocket != ""
	if s.GRPCPort != 0 && s.GRPCSocket != "" {
		return errors.New("grpc-port and grpc-socket exclude each other: expected one of them")
	}
	s.GRPCPort = cmp.Or(s.GRPCPort, 9111)
	s.Timeout = cmp.Or(s.Timeout, 2*time.Minute)
	s.Socket = cmp.Or(s.Socket, reach.Find(s.Label))
	return s.validate()
}

// validate returns the first invalid setting.
func (s *settings) validate() error {
	switch {
	case strings.Contains(s.Label, "/"):
		return fmt.Errorf("service-label: %q: expected a name without slashes", s.Label)
	case s.Timeout < 0:
		return fmt.Errorf("timeout: %v: expected a duration above zero, such as 30s", s.Timeout)
	case s.HTTPPort < 0 || s.HTTPPort > 65535:
		return fmt.Errorf("http-port: %d: expected a number from 1 to 65535", s.HTTPPort)
	case s.GRPCPort < 0 || s.GRPCPort > 65535:
		return fmt.Errorf("grpc-port: %d: expected a number from 1 to 65535", s.GRPCPort)
	case s.HTTPAuth != "" && !strings.Contains(s.HTTPAuth, ":"):
		return errors.New("http-basic-auth: expected USER:PASSWORD")
	case s.Store != "" && !slices.Contains([]string{"etcd", "bolt", "consul", "filedb", "redis"}, s.Store):
		return fmt.Errorf("store: %q: expected etcd, bolt, consul, filedb or redis", s.Store)
	}
	return nil
}

// loadFile reads the configuration file, if there is one. It warns about unknown keys: they
// are typing mistakes, or belong to another client.
func (s *Session) loadFile() error {
	path := cmp.Or(s.file, s.findFile())
	if path == "" {
		return nil
	}
	unknown, err := config.Load(path, &s.settings)
	for _, u := range unknown {
		fmt.Fprintln(s.Err, "agentctl:", show.Line(u.String()))
	}
	return err
}

// findFile returns the first configuration file in --config-dir or ~/.agentctl. The current
// directory is not searched: a file that another user left there could redirect agentctl to
// another agent.
func (s *Session) findFile() string {
	dirs := []string{s.dir}
	if home, ok := s.Env("HOME"); ok {
		dirs = append(dirs, filepath.Join(home, ".agentctl"))
	}
	for _, dir := range dirs {
		for _, name := range []string{"config.yaml", "config.yml", "config.json"} {
			path := filepath.Join(dir, name)
			if _, err := os.Stat(path); err == nil && dir != "" {
				return path
			}
		}
	}
	return ""
}
