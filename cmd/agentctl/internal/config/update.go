package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// changeTimeout is the default timeout of commands that change values. It is long, because
// --waitdone waits for what values depend on.
const changeTimeout = 5 * time.Minute

// changeFlags are the flags of the commands that change values.
type changeFlags struct {
	labels                 map[string]string
	replace, wait, verbose bool
	empty                  bool // with replace, files without values are meant
	withdraw               bool // the command is delete
	format                 *show.Format
}

// fileHelp describes FILE.
const fileHelp = "FILE (- for standard input) is YAML or JSON: groups such as linuxConfig, as config get prints them, or a list of {key, value}. Of a\n" +
	"folder, all files that end with .yaml, .yml or .json are read."

// update returns the command that declares values.
func update(s *session.Session) *cobra.Command {
	var o changeFlags
	cmd := &cobra.Command{
		Use:   "update FILE...",
		Short: "Declares values as one transaction",
		Long: "Update declares the values of the FILEs to the agent, as one transaction. They join those that gRPC and HTTP clients have\n" +
			"declared before; the values of stores are merged with them by priority.\n" + fileHelp + "\n\n" +
			"If a value is invalid, nothing is changed. If an operation fails, the others take effect, and the exit code is 1.",
		Example:           "  agentctl config update network.yaml\n  agentctl config update --replace --waitdone -v network/",
		ValidArgsFunction: names.CompleteFile,
		Args:              fileArgs,
	}
	cmd.Flags().BoolVar(&o.replace, "replace", false, "withdraw all other values that gRPC and HTTP clients have declared")
	cmd.Flags().BoolVar(&o.empty, "allow-empty", false, "with --replace: withdraw all values if the files have none; without this flag they are a mistake")
	o.labels = labelsFlag(cmd.Flags(), "remember the values with these labels, by which config get finds them: NAME or NAME=VALUE,\nseparated by commas, or '' for none (default io.ligato.from-client=agentctl)")
	o.add(s, cmd)
	cmd.RunE = s.WithGRPC(func(ctx context.Context, conn *grpc.ClientConn, args []string) error {
		if !cmd.Flags().Changed("labels") {
			o.labels["io.ligato.from-client"] = "agentctl"
		}
		return o.change(ctx, s, conn, args, documents.Documents.Values)
	})
	return cmd
}

// remove returns the command that withdraws values.
func remove(s *session.Session) *cobra.Command {
	var o changeFlags
	cmd := &cobra.Command{
		Use:   "delete FILE...",
		Short: "Withdraws values as one transaction",
		Long: "Delete withdraws the values of the FILEs that gRPC and HTTP clients have declared, as one transaction. Only the fields that make\n" +
			"its key matter in a value. A value that another source declares too stays, as that one has it; delete names it and its sources.\n" + fileHelp,
		Example:           "  agentctl config delete network.yaml",
		ValidArgsFunction: names.CompleteFile,
		Args:              fileArgs,
	}
	o.add(s, cmd)
	cmd.RunE = s.WithGRPC(func(ctx context.Context, conn *grpc.ClientConn, args []string) error {
		o.withdraw = true
		return o.change(ctx, s, conn, args, documents.Documents.Keys)
	})
	return cmd
}

// fileArgs checks that there is a file.
func fileArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("FILE is missing: expected a file of values, a folder, or - for standard input")
	}
	return nil
}

// add adds the flags that update and delete share.
func (o *changeFlags) add(s *session.Session, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.wait, "waitdone", false, "wait until no value is PENDING")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "print the state of each value")
	session.TimeoutFlag(cmd, changeTimeout)
	o.format = show.FormatFlag(cmd, s)
}

// change makes one transaction of the values of files, and prints the result. read returns the
// values of the documents.
func (o *changeFlags) change(ctx context.Context, s *session.Session, conn *grpc.ClientConn, files []string,
	read func(documents.Documents, *models.Registry) ([]documents.Value, error),
) error {
	all, err := documents.Read(s.In, files)
	if err != nil {
		return err
	}
	known, err := session.Registry(ctx, conn)
	if err != nil {
		return err
	}
	var values []documents.Value
	any, _ := all.Declare(known)
	switch {
	case !any && o.replace && !o.empty:
		return documents.ErrEmpty
	case any || !o.replace:
		values, err = read(all, known)
	}
	if errors.Is(err, documents.ErrIgnored) {
		warn(s, "warning: "+err.Error())
		err = nil
	}
	if err != nil {
		return err
	}
	request := &generic.SetConfigRequest{OverwriteAll: o.replace}
	for _, v := range values {
		item, err := session.Item(known, v.Key, v.Message)
		if err != nil {
			return err
		}
		request.Updates = append(request.Updates, &generic.UpdateItem{Item: item, Labels: o.labels})
	}
	manager := generic.NewManagerServiceClient(conn)
	if !o.withdraw {
		refused, err := session.Check(ctx, manager, request)
		if err = cmp.Or(err, all.Invalid("nothing was changed, because values are invalid", refused)); err != nil {
			return err
		}
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "wait-done", strconv.FormatBool(o.wait))
	answer, err := manager.SetConfig(ctx, request)
	if err != nil {
		return err
	}
	return o.print(s, resultsOf(answer))
}

// An outcome is the state of a value after the transaction. The names of its fields are an
// interface of scripts.
type outcome struct {
	Key, State string
	Message    string `json:",omitempty"` // the error, or the labels of unmet dependencies
}

// results are the answer of a change.
type results struct {
	Transaction uint64 // its number in config history; 0: nothing was to be changed
	Values      []outcome
}

// numberKey is the key of the result that has the number of the transaction as its message.
const numberKey = "seqnum"

// resultsOf returns the results in an answer.
func resultsOf(answer *generic.SetConfigResponse) (out results) {
	for _, r := range answer.GetResults() {
		if r.GetKey() == numberKey {
			out.Transaction, _ = strconv.ParseUint(r.GetStatus().GetMessage(), 10, 64) // 0 if it is none
			continue
		}
		out.Values = append(out.Values, outcome{r.GetKey(), r.GetStatus().GetStatus(), r.GetStatus().GetMessage()})
	}
	return out
}

// print prints OK, after the states of the values if they were asked for. Without them, values
// that are not as expected are named on standard error: those that wait are declared, but not
// applied, and those that stay after a withdrawal are declared by another source.
func (o *changeFlags) print(s *session.Session, r results) error {
	return o.format.Write(s.Out, r, func(out io.Writer) error {
		if o.verbose {
			t := show.NewTable(out, "STATE", "KEY", "REASON")
			for _, v := range r.Values {
				t.Row(v.State, v.Key, show.Remote(v.Message))
			}
			if err := t.End(); err != nil {
				return err
			}
		}
		for _, v := range r.Values {
			switch {
			case o.verbose:
			case o.withdraw && v.State != "REMOVED":
				warn(s, fmt.Sprintf("%s stays, and is %s: %s", show.Line(v.Key), v.State, show.Remote(v.Message)))
			case v.State == "PENDING":
				warn(s, fmt.Sprintf("%s is PENDING: %s", show.Line(v.Key), show.Remote(v.Message)))
			}
		}
		_, err := fmt.Fprintln(out, "OK")
		return err
	})
}

// warn prints a line to standard error.
func warn(s *session.Session, text string) { fmt.Fprintln(s.Err, show.Broken(s.Err, text, 2)) }
