package agent

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/nearest"
)

var (
	// errHelp reports that help was requested.
	errHelp = errors.New("help requested")
	// errUsage reports an invalid command line or environment.
	errUsage = errors.New("invalid flags")
)

// parse parses the command line, and the environment for flags that it does not set. The
// error is errHelp, or errUsage with details.
func (o Options) parse() (*settings, error) {
	s := &settings{options: o, storeFiles: map[string]*string{}}
	flags := flag.NewFlagSet(o.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if err := s.declare(flags); err != nil {
		return nil, err
	}
	err := flags.Parse(o.Args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, errHelp
	}
	if name, unknown := strings.CutPrefix(fmt.Sprint(err), "flag provided but not defined: -"); unknown {
		err = unknownFlag(flags, name)
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err == nil {
		err = fromEnvironment(flags, o.Env)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w; see %s -h", errUsage, err, o.Name)
	}
	publish, _ := o.Env("ENABLE_STATUS_PUBLISHING")
	s.PublishStatus = publish != ""
	s.Given = map[string]bool{}
	flags.Visit(func(f *flag.Flag) {
		s.Given[f.Name] = true
		if slices.Contains(s.idleFlags(), f.Name) {
			s.Idle = append(s.Idle, f.Name)
		}
	})
	return s, nil
}

// unknownFlag returns the error of a flag that the agent does not have.
func unknownFlag(flags *flag.FlagSet, name string) error {
	var names []string
	flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if near := nearest.Word(name, names); near != "" {
		return fmt.Errorf("unknown flag -%s: did you mean -%s?", name, near)
	}
	return fmt.Errorf("unknown flag -%s", name)
}

// declare adds all flags, with their defaults, to the flag set.
func (s *settings) declare(flags *flag.FlagSet) error {
	for _, section := range s.sections() {
		for _, e := range section.flags {
			if flags.Lookup(e.name) != nil {
				return fmt.Errorf("Options: flag %s exists already", e.name)
			}
			flags.Var(e.value, e.name, e.help)
		}
	}
	var unused string
	for _, name := range s.idleFlags() {
		flags.Var(text(&unused, ""), name, "")
	}
	flags.BoolVar(&s.Version, "version", false, "")
	flags.BoolVar(&s.Version, "V", false, "")
	return nil
}

// fromEnvironment sets the flags that are missing on the command line.
func fromEnvironment(flags *flag.FlagSet, env func(string) (string, bool)) error {
	// A variable VERSION of another program must not end the agent.
	given := map[string]bool{"version": true, "V": true} // set on the command line only
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var errs []error
	flags.VisitAll(func(f *flag.Flag) {
		text, ok := env(envName(f.Name))
		if given[f.Name] || !ok || text == "" {
			return
		}
		if err := flags.Set(f.Name, text); err != nil {
			errs = append(errs, fmt.Errorf("invalid value %q in the environment's %s: %w", text, envName(f.Name), err))
		}
	})
	return errors.Join(errs...)
}

// envName returns the environment variable of a flag: ETCD_CONFIG.
func envName(flag string) string {
	return strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
