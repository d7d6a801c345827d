package declare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
)

// put returns the command that declares one value where it is kept.
func put(s *session.Session) *cobra.Command {
	c := change{Session: s}
	cmd := &cobra.Command{
		Use:   "put VALUE CONTENT",
		Short: "Declares one value where it is kept",
		Long: "Put prints what CONTENT changes, which is JSON or YAML (- reads it from standard input), and stores it where VALUE is kept: in the\n" +
			"store or data source that takes effect, or in --source. VALUE is a key or a name; of a new value it\n" +
			"is the key, and agentctl declares it, as apply does, unless --source says otherwise. An invalid value is refused.\n\n" +
			storeHelp,
		Example: "  agentctl put veth1 '{name: veth1, type: VETH, mtu: 1400}'\n" +
			"  agentctl put config/linux/interfaces/v2/interface/lo1 '{\"name\":\"lo1\",\"type\":\"LOOPBACK\"}' --source redis",
		ValidArgsFunction: names.CompleteValue(s),
		SuggestFor:        []string{"set", "add", "create"},
		Args:              session.ExpectArgs("VALUE", "CONTENT (- reads it from standard input)"),
	}
	c.sourceFlag(cmd, "store the value in this store or data source (default: where it is kept; a new value: agentctl)")
	cmd.Flags().BoolVar(&c.wait, "wait", false, "wait until the value is configured")
	inAgent := s.WithAgentUntil(answerTime, func(ctx context.Context, args []string) error {
		deadline := time.Now().Add(c.Timeout)
		key, err := names.WholeOrKey(ctx, s, args[0])
		if err != nil {
			return err
		}
		content, err := contentOf(s, args[1])
		if err != nil {
			return err
		}
		if c.source == "" {
			if c.source, err = c.keeper(ctx, key); err != nil {
				return err
			}
		}
		if err := c.use("CONTENT", []pair{{key, content}}); err != nil {
			return err
		}
		return c.perform(ctx, key, deadline)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("store") {
			return session.Usagef("--store is for FILEs of apply: expected --source for a VALUE, or agentctl kvdb put for a key of a store without its agent")
		}
		return inAgent(cmd, args)
	}
	return cmd
}

// keeper returns the source that keeps the value of a key: the one that takes effect, else the only one that holds it, although
// refused. A new value is that of agentctl.
func (c *change) keeper(ctx context.Context, key string) (string, error) {
	held, err := c.holders(ctx, key)
	if err != nil || len(held) == 0 {
		return session.Layer, err
	}
	if len(held) == 1 {
		return held[0].Source, nil
	}
	return c.winner(ctx, key)
}

// contentOf returns the content of a value as JSON.
func contentOf(s *session.Session, given string) (json.RawMessage, error) {
	text := []byte(given)
	if given == "-" {
		var err error
		if text, err = documents.ReadFile(s.In, given); err != nil {
			return nil, err
		}
	}
	if json.Valid(text) {
		return bytes.TrimSpace(text), nil
	}
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil || fields == nil {
		return nil, session.Usagef("CONTENT is neither JSON nor YAML with the fields of the value: %w", orNone(err))
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("CONTENT: %w", err)
	}
	return out, nil
}

// errNoFields is the error of a text that is YAML without fields.
var errNoFields = errors.New("it has no fields")

// orNone returns err, or errNoFields if there is no other error.
func orNone(err error) error {
	if err == nil {
		return errNoFields
	}
	return err
}
