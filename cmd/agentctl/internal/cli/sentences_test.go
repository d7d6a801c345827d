package cli_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommandsInSentences looks up the commands that documents name in sentences and tables. What a command
// does is shown in sessions, which run.
func TestCommandsInSentences(t *testing.T) {
	quoted := regexp.MustCompile("`agentctl ([^`]+)`")
	checked := 0
	err := filepath.WalkDir("../../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".md") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, line := range quoted.FindAllStringSubmatch(string(text), -1) {
			checked++
			for _, words := range alternatives(strings.Fields(strings.ReplaceAll(line[1], `\|`, "|"))) {
				if err := mistake(words); err != nil {
					t.Errorf("%s: agentctl %s: %v", path, line[1], err)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 80 {
		t.Errorf("only %d commands were found: did their form change?", checked)
	}
}

// alternatives returns the commands that words with "get|put" stand for.
func alternatives(words []string) [][]string {
	for i, word := range words {
		choices := strings.Split(word, "|")
		if len(choices) == 1 || strings.ToLower(word) != word {
			continue
		}
		var out [][]string
		for _, one := range choices {
			rest := append(append([]string{}, words[:i]...), one)
			out = append(out, alternatives(append(rest, words[i+1:]...))...)
		}
		return out
	}
	return [][]string{words}
}

// mistake returns what is wrong with the names in a command line; nil: nothing. Words in capitals stand for
// arguments and values of flags, which may be missing.
func mistake(words []string) error {
	if words[0] == strings.ToUpper(words[0]) {
		return nil
	}
	cmd, rest, err := tree().Find(words)
	if err != nil {
		return err
	}
	if err = cmd.ParseFlags(rest); err != nil && strings.Contains(err.Error(), "unknown") {
		return err
	}
	if args := cmd.Flags().Args(); len(args) > 0 && !cmd.Runnable() && args[0] != strings.ToUpper(args[0]) {
		return fmt.Errorf("%s has no command %q", cmd.CommandPath(), args[0])
	}
	return nil
}
