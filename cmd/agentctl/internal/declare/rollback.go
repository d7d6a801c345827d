package declare

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// rollback returns the command that declares the values of an earlier time again.
func rollback(s *session.Session) *cobra.Command {
	var to uint64
	var yes bool
	c := change{Session: s, source: session.Layer}
	cmd := &cobra.Command{
		Use:        "rollback --to TXN",
		SuggestFor: []string{"undo", "revert"},
		Short:      "Declares the values after an earlier transaction again",
		Long: "Rollback prints the changes that lead back to the declared values after the transaction TXN of config history, asks, and declares\n" +
			"these values as agentctl. Nothing is changed if a value cannot be rolled back: the agent no longer remembers it, it has a secret,\n" +
			"which the history hides, or another source keeps its value: one of higher priority, or any one if the key is to be removed. Such\n" +
			"keys are named.",
		Example: "  agentctl rollback --to 12\n  agentctl rollback --to 12 --yes",
		Args: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("to") {
				return errors.New("--to is missing: expected the number of a transaction, which agentctl config history lists")
			}
			return session.ExpectArgs()(cmd, args)
		},
	}
	cmd.Flags().Uint64Var(&to, "to", 0, "number of the transaction")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.RunE = s.WithAgentUntil(editTime, func(ctx context.Context, _ []string) error {
		var all []wire.Record
		if err := s.Get(ctx, "/scheduler/txn-history", nil, &all); err != nil {
			return err
		}
		values, err := valuesAfter(all, to)
		if err != nil {
			return err
		}
		return c.rollBack(ctx, values, yes)
	})
	return cmd
}

// valuesAfter returns the declared values after a transaction, of the keys that later
// transactions changed; nil: there was none. The error names the keys of which that is not known.
func valuesAfter(all []wire.Record, to uint64) (map[string]json.RawMessage, error) {
	slices.SortFunc(all, func(a, b wire.Record) int { return cmp.Compare(a.SeqNum, b.SeqNum) })
	if !slices.ContainsFunc(all, func(r wire.Record) bool { return r.SeqNum == to }) {
		return nil, fmt.Errorf("the history has no transaction #%d", to)
	}
	then, now := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	complete := all[0].SeqNum == 0 // then has all keys, so others had no value
	for _, r := range all {
		values, replaces := declaredBy(r)
		if r.SeqNum > to {
			if replaces {
				removeOthers(now, then, values)
				removeOthers(now, now, values)
			}
			maps.Copy(now, values)
			continue
		}
		if replaces {
			complete = true
			clear(then)
		}
		maps.Copy(then, values)
	}
	out := map[string]json.RawMessage{}
	var wrong []error
	for _, key := range slices.Sorted(maps.Keys(now)) {
		value, known := then[key]
		switch {
		case !known && !complete:
			wrong = append(wrong, fmt.Errorf("%s: the history no longer has its earlier value", show.Line(key)))
		case strings.Contains(string(value), `"(secret)"`):
			wrong = append(wrong, fmt.Errorf("%s: the history hides its secrets", show.Line(key)))
		case show.Compact(value) != show.Compact(now[key]):
			out[key] = value
		}
	}
	if wrong != nil {
		return nil, fmt.Errorf("nothing was changed, because values cannot be rolled back:\n%w", errors.Join(wrong...))
	}
	return out, nil
}

// declaredBy returns the values that a transaction declared; nil: removed. A resync of the declared
// values replaces all others. A transaction that was undone declared nothing.
func declaredBy(r wire.Record) (values map[string]json.RawMessage, replaces bool) {
	failed := slices.ContainsFunc(r.Executed, func(op wire.Operation) bool { return op.NewErrMsg != "" })
	if r.TxnType != "NBTransaction" || r.Revert && failed {
		return nil, false
	}
	values = map[string]json.RawMessage{}
	for _, v := range r.Values {
		values[v.Key] = nil
		if v.Value != nil {
			values[v.Key] = v.Value.ProtoMsgData
		}
	}
	return values, r.ResyncType == "FullResync" || r.ResyncType == "UpstreamResync"
}

// removeOthers removes in now the keys of before that a replacement does not name.
func removeOthers(now, before, named map[string]json.RawMessage) {
	for key := range before {
		if _, stays := named[key]; !stays {
			now[key] = nil
		}
	}
}

// rollBack prints the changes, asks, and declares the values.
func (c *change) rollBack(ctx context.Context, values map[string]json.RawMessage, yes bool) (err error) {
	list := []pair{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		list = append(list, pair{key, values[key]})
	}
	if c.text, err = json.Marshal(list); err != nil {
		return err
	}
	p, err := c.plan(ctx)
	if err != nil {
		return err
	}
	if err := c.from.Invalid("nothing was changed, because values are invalid", p.Invalid); err != nil {
		return err
	}
	if err := reaches(p); err != nil {
		return err
	}
	if err := c.show(p); err != nil || len(list) == 0 {
		return err
	}
	if !yes {
		fmt.Fprint(c.Out, "Roll back? Only \"yes\" continues: ")
		answer, _ := bufio.NewReader(c.In).ReadString('\n') // the end of the input is no "yes"
		if strings.TrimSpace(answer) != "yes" {
			return errors.New("nothing was changed")
		}
	}
	if err := c.Request(ctx, http.MethodPut, "/configuration", url.Values{"datasrc": {c.source}}, c.text, &wire.Nothing{}); err != nil {
		return c.refused(err)
	}
	return c.outcome(ctx, time.Now())
}

// reaches reports as an error the keys that would keep the value of another source.
func reaches(p wire.Plan) error {
	var wrong []error
	for _, w := range p.Warnings {
		if w.KeptBy != "" {
			wrong = append(wrong, fmt.Errorf("%s: the source %s keeps its present value (agentctl sources KEY)", show.Line(w.Key), show.Line(w.KeptBy)))
		}
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("nothing was changed, because values cannot be rolled back:\n%w", errors.Join(wrong...))
}
