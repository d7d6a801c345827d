package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

var (
	// errHelp says that the help was asked for.
	errHelp = errors.New("help requested")
	// errUsage says that the command line or the environment makes no sense.
	errUsage = errors.New("see agent -h")
)

// parse reads the command line and, for the flags it does not give, the
// environment. Its error is errHelp, or errUsage with what is wrong.
func parse(args []string, env func(string) (string, bool)) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	s.declare(flags)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, errHelp
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err == nil {
		err = fromEnvironment(flags, env)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; %w", err, errUsage)
	}
	publish, _ := env("ENABLE_STATUS_PUBLISHING")
	s.PublishStatus = publish != ""
	s.Given = map[string]bool{}
	flags.Visit(func(f *flag.Flag) {
		s.Given[f.Name] = true
		if slices.Contains(idleFlags(), f.Name) {
			s.Idle = append(s.Idle, f.Name)
		}
	})
	return s, nil
}

func (s *settings) declare(flags *flag.FlagSet) {
	for _, section := range s.sections() {
		for _, e := range section.flags {
			flags.Var(e.value, e.name, e.help)
		}
	}
	var unused string
	for _, name := range idleFlags() {
		flags.Var(text(&unused, ""), name, "")
	}
	flags.BoolVar(&s.Version, "version", false, "")
	flags.BoolVar(&s.Version, "V", false, "")
}

// fromEnvironment sets the flags that the command line has not.
func fromEnvironment(flags *flag.FlagSet, env func(string) (string, bool)) error {
	given := map[string]bool{"version": true, "V": true} // only the command line asks for it
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

// envName is how a flag is called in the environment: ETCD_CONFIG.
func envName(flag string) string {
	return strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
