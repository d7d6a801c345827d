package session

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/keyplane/keyplane/internal/settingfile"
)

// Name and password for the agent's HTTP server come from a flag, the environment or the
// configuration file, in this order of precedence. Each of them can also name a file that
// contains them. A place with higher precedence replaces both the text and the file of the
// others: otherwise a file named in the configuration would contradict a password on the
// command line.

// authFromEnvironment overrides the configuration file.
func (s *Session) authFromEnvironment() {
	text, _ := s.Env("AGENTCTL_HTTP_BASIC_AUTH")
	file, _ := s.Env("AGENTCTL_HTTP_BASIC_AUTH_FILE")
	if text != "" || file != "" {
		s.HTTPAuth, s.HTTPAuthFile = text, file
	}
}

// authFromFlags overrides the environment and the configuration file.
func (s *Session) authFromFlags(f *pflag.FlagSet) error {
	if f.Changed("http-basic-auth") || f.Changed("http-basic-auth-file") {
		s.HTTPAuth, s.HTTPAuthFile = "", ""
	}
	return errors.Join(
		given(f, "http-basic-auth", &s.HTTPAuth, f.GetString),
		given(f, "http-basic-auth-file", &s.HTTPAuthFile, f.GetString),
	)
}

// readAuth reads the file with name and password, if one is named. It refuses a file that
// all users of this host can read or write, because its content is no secret. Pipes and
// devices are exempt: shells pass secrets through /dev/fd.
func (s *settings) readAuth() error {
	if s.HTTPAuthFile == "" {
		return nil
	}
	if s.HTTPAuth != "" {
		return errors.New("http-basic-auth and http-basic-auth-file exclude each other: expected one of them")
	}
	// More than this is not one line with a password.
	const most = 4 << 10
	// The mode of the open file is checked, not that of the path, which could be replaced
	// in between.
	f, err := settingfile.Open(s.HTTPAuthFile)
	if err != nil {
		return fmt.Errorf("http-basic-auth-file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("http-basic-auth-file: %w", err)
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o006 != 0 {
		return fmt.Errorf("http-basic-auth-file: %s has the mode %04o, with which all users can read or write it: chmod o-rw it", s.HTTPAuthFile, mode.Perm())
	}
	text, err := settingfile.ReadAll(f, most)
	if err != nil {
		return fmt.Errorf("http-basic-auth-file: %w", err)
	}
	s.HTTPAuth = strings.TrimRight(string(text), "\r\n")
	if !strings.Contains(s.HTTPAuth, ":") || strings.Contains(s.HTTPAuth, "\n") {
		return fmt.Errorf("http-basic-auth-file: %s: expected one line, USER:PASSWORD", s.HTTPAuthFile)
	}
	return nil
}
