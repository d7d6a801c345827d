package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A choice is a flag with a fixed set of values. It implements pflag.Value, so that cobra
// refuses other values before the command runs.
type choice struct {
	value string // the chosen word, or the default
	// At least two, because list joins the last one with "or".
	words []string
}

// choiceFlag adds a flag to cmd that has the value otherwise unless the user gives one of
// the words.
func choiceFlag(cmd *cobra.Command, name, otherwise, help string, words ...string) *choice {
	c := &choice{otherwise, words}
	cmd.Flags().Var(c, name, help+": "+c.list())
	return c
}

// list returns the words as English text: "NB, SB or unknown".
func (c *choice) list() string {
	last := len(c.words) - 1
	return strings.Join(c.words[:last], ", ") + " or " + c.words[last]
}

// String implements pflag.Value.
func (c *choice) String() string { return c.value }

// Type is the placeholder of the value in the help.
func (c *choice) Type() string { return "WORD" }

// Set implements pflag.Value.
func (c *choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("expected " + c.list())
	}
	c.value = word
	return nil
}
