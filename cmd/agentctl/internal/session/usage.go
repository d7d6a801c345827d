package session

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyplane/keyplane/internal/nearest"
)

// IsGroup is the annotation of commands that only have commands below them.
const IsGroup = "group of commands"

// Group makes cmd a command that does nothing itself: it prints its help. A word that is none of the
// commands below it is an error, so that a mistyped command does not end with the exit code 0.
func Group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = ExpectArgs()
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Annotations = map[string]string{IsGroup: "yes"}
	return cmd
}

// UnknownCommand returns the error of a word that is none of the commands below cmd.
func UnknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if exact := elsewhere(cmd.Root(), func(c *cobra.Command) bool { return called(c, word) }); len(exact) > 0 {
		return didYouMean(word, exact)
	}
	if near := nearest.Word(word, names); near != "" {
		return didYouMean(word, []string{cmd.CommandPath() + " " + near})
	}
	if near := elsewhere(cmd.Root(), func(c *cobra.Command) bool { return nearest.Word(word, []string{c.Name()}) != "" }); len(near) > 0 {
		return didYouMean(word, near)
	}
	if !cmd.HasParent() {
		return fmt.Errorf("unknown command %q: expected one that %s -h lists", word, cmd.CommandPath())
	}
	return fmt.Errorf("unknown command %q: expected %s", word, strings.Join(names, ", "))
}

// mostMeant is how many commands an error suggests: a word such as list is that of many.
const mostMeant = 6

// didYouMean returns the error of a word in place of which one of these commands is meant.
func didYouMean(word string, meant []string) error {
	more := ""
	if len(meant) > mostMeant {
		meant, more = meant[:mostMeant], ", or another one"
	}
	return fmt.Errorf("unknown command %q: did you mean %s%s?", word, strings.Join(meant, ", "), more)
}

// called reports whether a command has the name word, or is known by it elsewhere.
func called(c *cobra.Command, word string) bool {
	return c.Name() == word || c.HasAlias(word) || slices.Contains(c.SuggestFor, word)
}

// elsewhere returns the paths of the commands that fit, of the first level below cmd that has some.
func elsewhere(cmd *cobra.Command, fits func(*cobra.Command) bool) (out []string) {
	for level := cmd.Commands(); len(level) > 0; {
		var below []*cobra.Command
		for _, c := range level {
			if c.IsAvailableCommand() && fits(c) {
				out = append(out, c.CommandPath())
			}
			below = append(below, c.Commands()...)
		}
		if len(out) > 0 {
			return out
		}
		level = below
	}
	return nil
}

// FlagError returns an error about a flag in the words of agentctl: package pflag quotes functions of Go.
func FlagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		return unknownFlag(cmd, unknown.GetSpecifiedName())
	}
	if short, ok := errors.AsType[*pflag.NotExistError](err); ok && short.GetSpecifiedShortnames() == "f" && strings.Contains(cmd.Use, "FILE") {
		return errors.New("unknown flag -f: files need no flag here")
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s: %q: %s", invalid.GetFlag().Name, invalid.GetValue(), expected(invalid))
	}
	return err
}

// unknownFlag returns the error of a flag that cmd does not have.
func unknownFlag(cmd *cobra.Command, name string) error {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := nearest.Word(name, names); near != "" {
		return fmt.Errorf("unknown flag --%s: did you mean --%s?", name, near)
	}
	if cmd.Flags().Lookup("format") != nil && (name == "json" || name == "yaml") {
		return fmt.Errorf("unknown flag --%s: did you mean -f %s?", name, name)
	}
	return fmt.Errorf("unknown flag --%s", name)
}

// expected says what the value of a flag has to be.
func expected(invalid *pflag.InvalidValueError) string {
	cause := invalid.Unwrap()
	_, number := errors.AsType[*strconv.NumError](cause)
	switch kind := invalid.GetFlag().Value.Type(); {
	case kind == "duration":
		return "expected a time such as 30s or 2m"
	case kind == "bool":
		return "expected true or false"
	case number:
		return "expected a number"
	}
	return cause.Error()
}
