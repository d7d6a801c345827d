package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// plan returns the command that shows the effect of a file without applying it.
func (a *app) plan() *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Shows the operations that a file would cause",
		Long: "Plan prints the operations that the agent would execute if the values of FILE (- for standard input) were declared.\n" +
			"Nothing is changed. FILE is YAML or JSON: a list of {key, value}, where a null value means removal, or groups such as linuxConfig.\n" +
			"The format log prints the operations with their values, as the agent logs them.\n\n" +
			"The exit code is 1 if values are invalid; the valid ones are planned anyway.",
		Args: expectArgs("FILE"),
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "plan as if these were the only declared values")
	f := a.formatFlag(cmd, "log")
	cmd.RunE = a.withAgent(func(ctx context.Context, args []string) error {
		body, err := a.read(args[0])
		if err != nil {
			return err
		}
		query := url.Values{}
		if replace {
			query.Set("replace", "1")
		}
		if f.text == "log" {
			return a.copyText(ctx, http.MethodPost, "/scheduler/plan", query, body)
		}
		var p wire.Plan
		if err := a.request(ctx, http.MethodPost, "/scheduler/plan", query, body, &p); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		// The plan of the valid values is printed before the error about the others.
		if err := f.write(a.Out, p, func(out io.Writer) error { return planTable(out, p) }); err != nil {
			return err
		}
		return invalidError(args[0], p.Invalid)
	})
	return cmd
}

// read returns the content of a file, or of standard input for "-".
func (a *app) read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(a.In)
	}
	return os.ReadFile(file)
}

// planTable prints the operations of a plan in the order of their execution.
func planTable(out io.Writer, p wire.Plan) error {
	if len(p.Operations) == 0 {
		_, err := io.WriteString(out, "Nothing to do.\n")
		return err
	}
	return operationsTable(out, p.Operations)
}

// operationsTable prints one operation per line, with the state before and after it.
func operationsTable(out io.Writer, ops []wire.Operation) error {
	t := newTable(out, "OPERATION", "STATE", "NOTE", "KEY")
	for _, op := range ops {
		state := op.NewState
		if op.PrevState != "" && op.PrevState != op.NewState {
			state = op.PrevState + " -> " + op.NewState
		}
		t.row(op.Operation, state, note(op), op.Key)
	}
	return t.end()
}

// note lists the special properties of an operation.
func note(op wire.Operation) string {
	var out []string
	for _, n := range []struct {
		is   bool
		word string
	}{{op.IsDerived, "derived"}, {op.IsProperty, "property"}, {op.IsRecreate, "recreate"}, {op.NOOP && !op.IsProperty, "nothing is called"}} {
		if n.is {
			out = append(out, n.word)
		}
	}
	return strings.Join(out, ", ")
}

// invalidError returns an error that lists the invalid values with file and line, or nil if
// there are none.
func invalidError(file string, invalid []wire.Invalid) error {
	if len(invalid) == 0 {
		return nil
	}
	var b strings.Builder
	for _, i := range invalid {
		fmt.Fprintf(&b, "\n  %s:%d: ", file, i.Line)
		if i.Key != "" {
			b.WriteString(oneLine(i.Key) + ": ")
		}
		b.WriteString(remote(i.Error))
	}
	return fmt.Errorf("not part of the plan:%s", &b)
}
