package agent

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

func environment(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := pairs[name]
		return v, ok
	}
}

func TestParse(t *testing.T) {
	tests := []struct {
		name string
		args []string
		env  map[string]string
		want func(s *settings) bool
	}{
		{"defaults", nil, nil, func(s *settings) bool {
			return s.Label == "vpp1" && s.ConfigDir == "." && s.EtcdConfig == "etcd.conf" && s.OnExit == "leave" &&
				s.LogLevel == slog.LevelInfo && s.StopTimeout == 5*time.Second && len(s.Idle) == 0
		}},
		{"one dash", []string{"-etcd-config=a.conf"}, nil, func(s *settings) bool { return s.EtcdConfig == "a.conf" }},
		{"two dashes", []string{"--etcd-config=a.conf"}, nil, func(s *settings) bool { return s.EtcdConfig == "a.conf" }},
		{"a space", []string{"--etcd-config", "a.conf"}, nil, func(s *settings) bool { return s.EtcdConfig == "a.conf" }},
		{"environment", nil, map[string]string{"MICROSERVICE_LABEL": "edge", "LINUX_IFPLUGIN_CONFIG": "x", "STOP_TIMEOUT": "1m"}, func(s *settings) bool {
			return s.Label == "edge" && s.LinuxIfConfig == "x" && s.StopTimeout == time.Minute
		}},
		{"empty in the environment is not given", nil, map[string]string{"MICROSERVICE_LABEL": ""}, func(s *settings) bool { return s.Label == "vpp1" }},
		{"the command line wins", []string{"-microservice-label=here"}, map[string]string{"MICROSERVICE_LABEL": "there"}, func(s *settings) bool { return s.Label == "here" }},
		{"log level by an older name", nil, map[string]string{"INITIAL_LOGLVL": "trace"}, func(s *settings) bool { return s.LogLevel == slog.LevelDebug }},
		{"flags without effect are accepted", []string{"-msgsync-config=msgsync.conf"}, map[string]string{"KAFKA_CONFIG": "kafka.conf"}, func(s *settings) bool {
			return slices.Equal(s.Idle, []string{"kafka-config", "msgsync-config"})
		}},
		{"status is published", nil, map[string]string{"ENABLE_STATUS_PUBLISHING": "y"}, func(s *settings) bool { return s.PublishStatus }},
		{"version", []string{"-V"}, map[string]string{"VERSION": "1.2"}, func(s *settings) bool { return s.Version }},
		{"version is no flag of the environment", nil, map[string]string{"VERSION": "1.2", "V": "1"}, func(s *settings) bool { return !s.Version }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Options{Name: "agent", Args: tt.args, Env: environment(tt.env)}.parse()
			if err != nil || !tt.want(s) {
				t.Errorf("parse = %+v, %v", s, err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name string
		args []string
		env  map[string]string
		want []string // parts of the error
	}{
		{"an unknown flag", []string{"-etcd-confg=x"}, nil, []string{"-etcd-confg: did you mean -etcd-config?", "agent -h"}},
		{"an argument", []string{"start"}, nil, []string{`"start"`}},
		{"a label with a slash", []string{"-microservice-label=a/b"}, nil, []string{`"a/b"`, "-microservice-label", "such as vpp1"}},
		{"a label that is no folder's name", []string{"-microservice-label=.."}, nil, []string{`".."`, "such as vpp1"}},
		{"a label with a control character", []string{"-microservice-label=a\x1bb"}, nil, []string{"such as vpp1"}},
		{"a choice", []string{"-on-exit=keep"}, nil, []string{`"keep"`, "leave or remove"}},
		{"a duration", []string{"-stop-timeout=5"}, nil, []string{`"5"`, "such as 5s"}},
		{"a level", nil, map[string]string{"INITIAL_LOGLVL": "loud"}, []string{`"loud"`, "INITIAL_LOGLVL", "debug, info"}},
		{"two at once", nil, map[string]string{"INITIAL_LOGLVL": "loud", "ON_EXIT": "keep"}, []string{"INITIAL_LOGLVL", "ON_EXIT"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Options{Name: "agent", Args: tt.args, Env: environment(tt.env)}.parse()
			if !errors.Is(err, errUsage) {
				t.Fatalf("error %v, want errUsage", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	for _, arg := range []string{"-h", "--help"} {
		if _, err := (Options{Args: []string{arg}, Env: environment(nil)}).parse(); !errors.Is(err, errHelp) {
			t.Errorf("%s: %v, want errHelp", arg, err)
		}
	}
	var out bytes.Buffer
	Options{Name: "agent"}.usage(&out)
	names := (&settings{}).idleFlags()
	for _, section := range (&settings{}).sections() {
		for _, e := range section.flags {
			names = append(names, e.name)
			if !strings.Contains(out.String(), envName(e.name)) {
				t.Errorf("help does not name %s", envName(e.name))
			}
		}
	}
	for _, name := range names {
		if !strings.Contains(out.String(), "-"+name) {
			t.Errorf("help does not name -%s", name)
		}
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 140 {
			t.Errorf("help line of %d characters: %s", len(line), line)
		}
	}
}
