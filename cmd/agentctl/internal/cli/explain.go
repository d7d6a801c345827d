package cli

import (
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

func (a *app) explain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain KEY",
		Short: "Says why a value is not applied",
		Long:  "Explain says how a value is and, if it is not applied, why: below it what it waits for, down to what somebody can mend.",
		Args:  want("KEY"),
	}
	f := formatFlag(cmd)
	cmd.RunE = a.looking(func(ctx context.Context, args []string) error {
		var e wire.Explanation
		if err := a.get(ctx, "/scheduler/explain", url.Values{"key": {args[0]}}, &e); err != nil {
			return err
		}
		return f.write(a.Out, e, func(out io.Writer) error {
			_, err := io.WriteString(out, explained(e, ""))
			return err
		})
	})
	return cmd
}

// explained is an explanation as indented lines, the causes below what they cause.
func explained(e wire.Explanation, indent string) string {
	var b strings.Builder
	b.WriteString(indent + oneLine(e.Text) + "\n")
	for _, cause := range e.Because {
		b.WriteString(explained(cause, indent+"  "))
	}
	return b.String()
}
