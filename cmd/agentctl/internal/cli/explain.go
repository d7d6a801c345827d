package cli

import (
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// explain returns the command that explains the state of one value.
func (a *app) explain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain KEY",
		Short: "Explains why a value is not applied",
		Long: "Explain prints the state of a value. If the value is not applied, the lines below it name the cause,\n" +
			"then the cause of that cause, down to one that a user can fix.",
		Args: expectArgs("KEY"),
	}
	f := a.formatFlag(cmd)
	cmd.RunE = a.withAgent(func(ctx context.Context, args []string) error {
		var e wire.Explanation
		if err := a.get(ctx, "/scheduler/explain", url.Values{"key": {args[0]}}, &e); err != nil {
			return err
		}
		return f.write(a.Out, e, func(out io.Writer) error {
			_, err := io.WriteString(out, explanationLines(e, ""))
			return err
		})
	})
	return cmd
}

// explanationLines returns the explanation as text. Each cause is indented below its effect.
func explanationLines(e wire.Explanation, indent string) string {
	var b strings.Builder
	// The text quotes errors, which may come from a value.
	b.WriteString(indent + oneLine(e.Text) + "\n")
	for _, cause := range e.Because {
		b.WriteString(explanationLines(cause, indent+"  "))
	}
	return b.String()
}
