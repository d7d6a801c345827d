package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// importFlags are the flags of the command import.
type importFlags struct {
	grpc, force bool
	txOps       int
}

// importFile returns the command that writes the keys of a file.
func importFile(s *session.Session) *cobra.Command {
	var o importFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Writes the keys of a file to a store, or declares them by gRPC",
		Long: "Import writes keys and values from FILE (- for standard input) to a store, as kvdb put does. Each line is KEY JSON; empty lines, and\n" +
			"those that begin with #, are left out. Up to --txops keys are one transaction.\n\n" +
			"With --grpc, the values are declared to the agent by gRPC, as config update does; no store has them.\n\n" +
			"If a value is invalid, nothing is written.",
		Example:           "  agentctl import keys.txt\n  agentctl import --grpc --txops 1000 keys.txt",
		ValidArgsFunction: names.CompleteFile,
		Args:              session.ExpectArgs("FILE"),
		PreRunE: func(*cobra.Command, []string) error {
			if o.txOps < 1 {
				return session.Usagef("txops: %d: expected a number from 1", o.txOps)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.grpc, "grpc", false, "declare the values by gRPC instead of writing them to a store")
	cmd.Flags().IntVar(&o.txOps, "txops", 128, "most keys of one transaction")
	cmd.Flags().BoolVar(&o.force, "force", false, "write values to a store even if the agent would refuse them")
	session.TimeoutFlag(cmd, 30*time.Second)
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "time" { // in vpp-agent 3.5
			name = "timeout"
		}
		return pflag.NormalizedName(name)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		lines, err := readLines(s, args[0])
		if err != nil {
			return err
		}
		if o.grpc {
			return s.WithGRPC(func(ctx context.Context, conn *grpc.ClientConn, _ []string) error {
				return o.declare(ctx, s, conn, lines)
			})(cmd, args)
		}
		return s.WithStore(func(ctx context.Context, store kvdbsync.Store, _ []string) error {
			return o.write(ctx, s, store, lines)
		})(cmd, args)
	}
	return cmd
}

// A line is a key with its value.
type line struct {
	place  string // file and line, for errors
	number int    // from 1
	column int    // of the value, from 1
	pair   kvdbsync.Pair
}

// about returns the line in the form that says its mistakes. File is the name of the file.
func (l line) about(short string) documents.Line {
	file := strings.TrimSuffix(l.place, fmt.Sprintf(":%d", l.number))
	return documents.Line{File: file, Number: l.number, Column: l.column, Key: l.pair.Key, Short: short, Value: l.pair.Value}
}

// readLines reads the lines of a file. The error lists those that have no value.
func readLines(s *session.Session, name string) (out []line, err error) {
	text, err := documents.ReadFile(s.In, name)
	if err != nil {
		return nil, err
	}
	number := 0
	var wrong []string
	for whole := range strings.Lines(string(text)) {
		number++
		text := strings.TrimSpace(whole)
		if text == "" || text[0] == '#' {
			continue
		}
		place := fmt.Sprintf("%s:%d", name, number)
		at := strings.IndexAny(text, " \t")
		if at < 0 && strings.HasSuffix(text, ":") && len(out)+len(wrong) == 0 {
			return nil, fmt.Errorf("%s:%d: %s looks like YAML; import reads lines of KEY JSON: agentctl apply FILE --store STORE writes a document", name, number, show.Line(text))
		}
		if at < 0 {
			wrong = append(wrong, place+":1: "+show.Line(text)+": it has no value: expected KEY JSON")
			continue
		}
		value := strings.TrimSpace(text[at:])
		column := utf8.RuneCountInString(whole[:strings.LastIndex(whole, value)]) + 1
		out = append(out, line{place, number, column, kvdbsync.Pair{Key: text[:at], Value: []byte(value)}})
	}
	if err := nothingChanged(wrong); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no keys: expected lines such as config/linux/l3/v2/route/... {...}", name)
	}
	return out, nil
}

// mostSaid is how many mistakes an error lists.
const mostSaid = 20

// nothingChanged returns the error of lines that are wrong, or nil if there are none.
func nothingChanged(wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}
	if more := len(wrong) - mostSaid; more > 0 {
		wrong = append(wrong[:mostSaid:mostSaid], fmt.Sprintf("and %d more", more))
	}
	return session.Lines(errors.New("nothing was changed, because values are invalid:\n  " + strings.Join(wrong, "\n  ")))
}

// write writes the lines to a store.
func (o importFlags) write(ctx context.Context, s *session.Session, store kvdbsync.Store, lines []line) error {
	pairs := make([]kvdbsync.Pair, len(lines))
	for i, l := range lines {
		key, err := s.FullKey(ctx, store, l.pair.Key)
		if err != nil {
			return err
		}
		pairs[i] = kvdbsync.Pair{Key: key, Value: l.pair.Value}
	}
	if !o.force {
		if err := checkLines(ctx, s, lines, pairs); err != nil {
			return err
		}
	}
	o.begin(s, len(pairs))
	done := 0
	for _, batch := range batches(pairs, func(p kvdbsync.Pair) string { return p.Key }, o.txOps) {
		if err := writeBatch(ctx, store, batch, func(key string) { done++; o.progress(s, key) }); err != nil {
			return fmt.Errorf("%d of %d keys were written: %w", done, len(pairs), err)
		}
	}
	return o.finish(s, done)
}

// checkLines returns an error with all lines that the agent would refuse.
func checkLines(ctx context.Context, s *session.Session, lines []line, pairs []kvdbsync.Pair) error {
	c := newChecking(pairs)
	progress := show.NewProgress(s.Err, s.Env, "checking", len(c.requests))
	if !show.IsTerminal(s.Err) {
		progress = show.NewProgress(io.Discard, s.Env, "", 0)
	}
	defer progress.End()
	if err := c.ask(ctx, s, progress.Step); err != nil {
		return err
	}
	var wrong []string
	for i, err := range c.wrong {
		if err != nil {
			wrong = said(wrong, lines[i].about(shortKey(pairs[i])), c.refused[i], err)
		}
	}
	return nothingChanged(wrong)
}

// said appends the mistakes of a line as validate says them: those that the agent has found, or without one those of the
// models, and otherwise err. Of lines after mostSaid mistakes only the number is said.
func said(all []string, l documents.Line, refused *wire.Invalid, err error) []string {
	if len(all) > mostSaid {
		return append(all, "")
	}
	var found []documents.Finding
	if refused != nil {
		found = l.Refused(*refused)
	} else {
		found = l.Check(models.BuiltIn())
	}
	if len(found) == 0 && err != nil {
		found = append(found, documents.Finding{File: l.File, Line: l.Number, Column: 1, Key: l.Key, Text: err.Error()})
	}
	for _, f := range found {
		all = append(all, f.String())
	}
	return all
}

// batches divides values into transactions of at most so many keys, each with different keys: a
// store refuses two values of a key at once.
func batches[V any](values []V, keyOf func(V) string, most int) (out [][]V) {
	begin, seen := 0, map[string]bool{}
	for i, v := range values {
		key := keyOf(v)
		if i-begin == most || seen[key] {
			out = append(out, values[begin:i])
			begin, seen = i, map[string]bool{}
		}
		seen[key] = true
	}
	return append(out, values[begin:])
}

// writeBatch writes pairs in one transaction if the store has any, and calls written for each key. It
// divides a transaction that is too large for the server.
func writeBatch(ctx context.Context, store kvdbsync.Store, batch []kvdbsync.Pair, written func(key string)) error {
	atomic, ok := store.(interface {
		Apply(ctx context.Context, changes []kvdbsync.Pair) error
	})
	if !ok {
		for _, p := range batch {
			if err := store.Put(ctx, p.Key, p.Value); err != nil {
				return err
			}
			written(p.Key)
		}
		return nil
	}
	err := atomic.Apply(ctx, batch)
	if half := len(batch) / 2; errors.Is(err, kvdbsync.ErrTooLarge) && half > 0 {
		if err := writeBatch(ctx, store, batch[:half], written); err != nil {
			return err
		}
		return writeBatch(ctx, store, batch[half:], written)
	}
	if err != nil {
		return err
	}
	for _, p := range batch {
		written(p.Key)
	}
	return nil
}

// declare declares the lines by gRPC.
func (o importFlags) declare(ctx context.Context, s *session.Session, conn *grpc.ClientConn, lines []line) error {
	known, err := session.Registry(ctx, conn)
	if err != nil {
		return err
	}
	values, err := o.decode(s, known, lines)
	if err != nil {
		return err
	}
	manager := generic.NewManagerServiceClient(conn)
	var requests []*generic.SetConfigRequest
	for _, some := range batches(values, func(v documents.Value) string { return v.Key }, o.txOps) {
		request := &generic.SetConfigRequest{}
		for _, v := range some {
			item, err := session.Item(known, v.Key, v.Message)
			if err != nil {
				return err
			}
			request.Updates = append(request.Updates, &generic.UpdateItem{Item: item})
		}
		refused, err := session.Check(ctx, manager, request)
		if err = cmp.Or(err, invalidLines(lines, refused)); err != nil {
			return err
		}
		requests = append(requests, request)
	}
	o.begin(s, len(values))
	done := 0
	for _, request := range requests {
		if _, err := manager.SetConfig(ctx, request); err != nil {
			return fmt.Errorf("%d of %d keys were declared before this: %w", done, len(values), s.ExplainGRPC(err))
		}
		for range request.GetUpdates() {
			o.progress(s, values[done].Key)
			done++
		}
	}
	return o.finish(s, done)
}

// invalidLines returns an error with the mistakes of the lines whose values the agent refuses, or nil if there are none.
func invalidLines(lines []line, refused []wire.Invalid) error {
	last := map[string]line{} // which replaces the earlier ones of its key
	for _, l := range lines {
		last[shortKey(l.pair)] = l
	}
	var wrong []string
	for _, i := range refused {
		l, known := last[i.Key]
		if !known {
			wrong = append(wrong, "the agent: "+show.Line(i.Key)+": "+show.Remote(i.Error))
			continue
		}
		wrong = said(wrong, l.about(i.Key), &i, nil)
	}
	return nothingChanged(wrong)
}

// decode returns the values of the lines with their short keys. gRPC reaches one agent, so keys of
// several agents are an error.
func (o importFlags) decode(s *session.Session, known *models.Registry, lines []line) (values []documents.Value, err error) {
	var wrong []string
	label := s.GivenLabel()
	for _, l := range lines {
		key := l.pair.Key
		if session.IsFullKey(key) {
			own, short, _ := strings.Cut(strings.TrimPrefix(key, session.AllAgents), "/")
			if label != "" && own != label {
				wrong = append(wrong, fmt.Sprintf("%s:1: %s: it belongs to the agent %s; expected only keys of %s, because gRPC reaches one agent", l.place, show.Line(key), show.Line(own), show.Line(label)))
				continue
			}
			label, key = own, short
		}
		m, err := known.Decode(key, l.pair.Value)
		if err != nil {
			wrong = said(wrong, l.about(key), nil, err)
			continue
		}
		values = append(values, documents.Value{Key: key, Message: m, Place: l.place})
	}
	return values, nothingChanged(wrong)
}

// begin prints the first line. It and the lines of keys are those of vpp-agent 3.5.
func (o importFlags) begin(s *session.Session, keys int) {
	fmt.Fprintf(s.Out, "importing %d key vals\n", keys)
}

// progress prints a key that is done.
func (o importFlags) progress(s *session.Session, key string) {
	fmt.Fprintf(s.Out, " - %s\n", show.Line(key))
}

// finish prints the last line, which counts the keys.
func (o importFlags) finish(s *session.Session, done int) error {
	verb := map[bool]string{true: "declared", false: "written"}[o.grpc]
	_, err := fmt.Fprintf(s.Out, "OK, %d %s\n", done, verb)
	return err
}
