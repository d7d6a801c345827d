package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// tellsChanges marks commands whose exit code tells whether there are changes, as that of
// "terraform plan -detailed-exitcode". A wrong command line is a failure there.
const tellsChanges = "exit code tells changes"

// exitHelp explains the exit codes of such commands.
const exitHelp = "Exit codes: 0 nothing to do, 2 changes, 1 an error."

// plan returns the command that shows the effect of files without applying them.
func (a *app) plan() *cobra.Command {
	var replace bool
	var as string
	cmd := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Shows the changes that files would cause",
		Long: "Plan prints the changes that the agent would make if the values of the FILEs (- for standard input) were declared. Nothing is changed.\n" +
			"FILE is YAML or JSON: a list of {key, value}, where a null value means removal, or groups such as linuxConfig. Of a folder, all files\n" +
			"that end with .yaml, .yml or .json are read.\n\n" +
			"With --as SOURCE, the values are the whole content of a source, such as etcd: what is not in them is removed. With --as filedb:PATH,\n" +
			"FILE is a new text of the file PATH, so the plan is that of saving it.\n\n" +
			"+ create, ~ update, - delete, -/+ delete and create again, ... PENDING. The format table has one line for each operation, also those\n" +
			"on parts of values; log is the form of the agent's log.\n\n" +
			exitHelp + " Invalid values are an error; the valid ones are planned anyway.",
		Example:     "  agentctl plan new.yaml\n  agentctl plan new.yaml --as filedb:/etc/keyplane/network/routes.yaml\n  agentctl plan network/ --as etcd",
		Args:        cobra.MinimumNArgs(1),
		Annotations: map[string]string{tellsChanges: ""},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "plan as if these were the only declared values")
	cmd.Flags().StringVar(&as, "as", "", "plan as the content of this SOURCE, or of the file SOURCE:PATH")
	f := a.formatFlag(cmd, "log", "table")
	cmd.RunE = a.withAgent(func(ctx context.Context, args []string) error {
		all, err := a.readAll(args)
		if err != nil {
			return err
		}
		query := url.Values{}
		if replace {
			query.Set("replace", "1")
		}
		if as != "" {
			query.Set("as", as)
		}
		var p wire.Plan
		if err := a.request(ctx, http.MethodPost, "/scheduler/plan", query, all.text(), &p); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, ", "), err)
		}
		switch f.text {
		case "log":
			err = a.copyText(ctx, http.MethodPost, "/scheduler/plan", query, all.text())
		case "table":
			err = planTable(a.Out, p)
		default: // the plan of the valid values is printed before the error about the others
			err = f.write(a.Out, p, func(out io.Writer) error {
				return ignoreChanges(a.printChanges(out, "Plan", changesOf(p.Operations), len(p.Invalid)))
			})
		}
		if err == nil && len(changesOf(p.Operations)) > 0 {
			err = errChanges
		}
		return errors.Join(err, all.invalid(p.Invalid))
	})
	return cmd
}

// ignoreChanges returns err, or nil for errChanges.
func ignoreChanges(err error) error {
	if errors.Is(err, errChanges) {
		return nil
	}
	return err
}

// withoutChanges returns err, or its errors other than errChanges if it joins several; nil: there is
// no other.
func withoutChanges(err error) error {
	all, joined := err.(interface{ Unwrap() []error }) // this join, not one within
	switch {
	case err == errChanges: //nolint:errorlint // it is never wrapped
		return nil
	case !joined:
		return err
	}
	return errors.Join(slices.DeleteFunc(slices.Clone(all.Unwrap()), func(e error) bool { return withoutChanges(e) == nil })...)
}

// A document is the text of one file.
type document struct {
	// The path as the user gave it, or "-" for standard input. Errors name it.
	name string
	text []byte
}

// documents are the texts that one request has, one after the other.
type documents []document

// readAll reads files, and the files in folders.
func (a *app) readAll(names []string) (out documents, err error) {
	for _, name := range names {
		files := []string{name}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			files, err = filesIn(name)
			if err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			text, err := a.read(file)
			if err != nil {
				return nil, err
			}
			out = append(out, document{file, text})
		}
	}
	return out, nil
}

// filesIn returns the files of a folder that have values, sorted by name.
func filesIn(folder string) (out []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			out = append(out, filepath.Join(folder, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no file ends with .yaml, .yml or .json", folder)
	}
	return out, nil
}

// separator divides YAML documents.
const separator = "\n---\n"

// text returns the texts as one.
func (ds documents) text() []byte {
	var all [][]byte
	for _, d := range ds {
		all = append(all, d.text)
	}
	return bytes.Join(all, []byte(separator))
}

// place returns the file and line of a line of text.
func (ds documents) place(line int) string {
	for _, d := range ds {
		lines := bytes.Count(d.text, []byte("\n")) + strings.Count(separator, "\n")
		if line <= lines || len(ds) == 1 {
			return fmt.Sprintf("%s:%d", d.name, line)
		}
		line -= lines
	}
	return fmt.Sprintf("line %d", line)
}

// invalid returns an error that lists invalid values with file and line, or nil if there are none.
func (ds documents) invalid(invalid []wire.Invalid) error {
	if len(invalid) == 0 {
		return nil
	}
	var b strings.Builder
	for _, i := range invalid {
		b.WriteString("\n  ")
		if i.Line > 0 {
			b.WriteString(ds.place(i.Line) + ": ")
		}
		if i.Key != "" {
			b.WriteString(oneLine(i.Key) + ": ")
		}
		b.WriteString(remote(i.Error))
	}
	return fmt.Errorf("not part of the plan:%s", &b)
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
