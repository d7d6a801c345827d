package show

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A Choice is a flag with a fixed set of values. It implements pflag.Value, so that cobra
// refuses other values before the command runs.
type Choice struct {
	Value string // the chosen word, or the default
	// At least two, because list joins the last one with "or".
	words []string
}

// ChoiceFlag adds a flag to cmd that has the value otherwise unless the user gives one of
// the words.
func ChoiceFlag(cmd *cobra.Command, name, otherwise, help string, words ...string) *Choice {
	c := &Choice{otherwise, words}
	cmd.Flags().Var(c, name, help+": "+c.list())
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails only without the flag
	return c
}

// list returns the words as English text: "NB, SB or unknown".
func (c *Choice) list() string {
	last := len(c.words) - 1
	return strings.Join(c.words[:last], ", ") + " or " + c.words[last]
}

// String implements pflag.Value.
func (c *Choice) String() string { return c.Value }

// Type is the word for the value in the help.
func (c *Choice) Type() string { return "WORD" }

// Set implements pflag.Value.
func (c *Choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("expected " + c.list())
	}
	c.Value = word
	return nil
}
