package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A choice is a flag that is one of a few words.
type choice struct {
	value string
	words []string
}

// choiceFlag gives cmd a flag that is otherwise, or one of the words.
func choiceFlag(cmd *cobra.Command, name, otherwise, help string, words ...string) *choice {
	c := &choice{otherwise, words}
	cmd.Flags().Var(c, name, help+": "+c.list())
	return c
}

func (c *choice) list() string {
	last := len(c.words) - 1
	return strings.Join(c.words[:last], ", ") + " or " + c.words[last]
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "WORD" }

// Set implements pflag.Value.
func (c *choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("expected " + c.list())
	}
	c.value = word
	return nil
}
