package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A Life is the configuration of an agent in a child process. Its southbound is a file,
// the journal, with one line for each verb. So it survives any end of the child.
type Life struct {
	Kind    string
	Config  json.RawMessage
	Journal string
	Grace   time.Duration
	// NoWatches makes the kernel refuse file watches. The child is root of a user
	// namespace then.
	NoWatches bool
	// State is a folder that survives the child. Without it the child has no saved state,
	// and the southbound shows the owners of items. While the folder has a file "away",
	// the store cannot be reached. The child makes the file "committed" after each
	// transaction.
	State string
}

// The files of Life.State.
const (
	awayName      = "away"
	committedName = "committed"
)

// lifeVariable holds a Life in the environment of a child.
const lifeVariable = "KEYPLANE_FAULTS_LIFE"

// A verb is a line of the journal.
type verb struct {
	At time.Time
	history.Change
}

// Live is the main function of a child process. It ends with an error, or when in ends.
// Each line of in is an array of changes to write. The answer is an empty line, or the
// error of the write.
func Live(ctx context.Context, text string, in io.Reader, out io.Writer) error {
	var life Life
	if err := json.Unmarshal([]byte(text), &life); err != nil {
		return err
	}
	// The limit is that of the user namespace, so it does not concern other programs.
	if life.NoWatches {
		if err := os.WriteFile("/proc/sys/user/max_inotify_watches", []byte("0"), 0); err != nil {
			return err
		}
	}
	connector, err := connect(life)
	if err != nil {
		return err
	}
	agent, err := revive(life, connector)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return agent.Run(ctx) })
	g.Go(func() error { return obey(ctx, connector, in, out) })
	return g.Wait()
}

// connect makes the connector of the life's kind of store in this process.
func connect(life Life) (kvdbsync.Connector, error) {
	for _, k := range stores.Kinds() {
		if k.Name == life.Kind {
			return k.Connect(life.Config)
		}
	}
	return nil, fmt.Errorf("no store %q", life.Kind)
}

// revive makes an agent with a southbound from the journal.
func revive(life Life, connector kvdbsync.Connector) (*Agent, error) {
	has := map[string]string{}
	verbs, whole, err := readJournal(life.Journal, 0)
	if err != nil {
		return nil, err
	}
	// The southbound survives the agent, so the new agent finds the items of the old one.
	for _, v := range verbs {
		has[v.Key] = v.Text
		if v.Text == "" {
			delete(has, v.Key)
		}
	}
	// The last life may have ended within a line; the next verb must not continue it.
	if err := os.Truncate(life.Journal, whole); err != nil {
		return nil, err
	}
	journal, err := os.OpenFile(life.Journal, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	south := newSouthbound(has, func(c history.Change) error {
		line, err := json.Marshal(verb{At: time.Now(), Change: c})
		if err != nil {
			return err
		}
		_, err = journal.Write(append(line, '\n'))
		return err
	})
	o := agentOptions{connector: connector, south: south, grace: life.Grace, log: slog.New(slog.DiscardHandler)}
	if life.State == "" {
		return newAgent(o)
	}
	// Like most of VPP: items have no owner, and a verb takes effect before it returns. So
	// a kill can come after the effect and before the agent has recorded it.
	south.unknown, south.answers = true, 5*time.Millisecond
	o.connector = awayWhile{connector, filepath.Join(life.State, awayName)}
	o.committed = func() { _ = os.WriteFile(filepath.Join(life.State, committedName), nil, 0o600) } // the test waits for it
	o.memories, err = openMemories(life.State, o.log)
	if err != nil {
		return nil, err
	}
	return newAgent(o)
}

// awayWhile is a connector that cannot reach its store while a file exists.
type awayWhile struct {
	kvdbsync.Connector
	path string
}

// errAway is the error of every watch while the store is away.
var errAway = errors.New("the store is away")

// Watch fails at once while the file exists. A watch that has begun goes on.
func (c awayWhile) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	if _, err := os.Stat(c.path); err == nil {
		return func(yield func(kvdbsync.Batch, error) bool) { yield(kvdbsync.Batch{}, errAway) }
	}
	return c.Connector.Watch(ctx, prefix)
}

// readJournal returns the verbs of whole lines from an offset on, and the offset behind
// the last one. The file may end with half a line.
func readJournal(path string, from int64) (verbs []verb, whole int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, from, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, from, err
	}
	lines := bufio.NewReader(f)
	for whole = from; ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return verbs, whole, nil
		}
		var v verb
		if err == nil {
			err = json.Unmarshal(line, &v)
		}
		if err != nil {
			return nil, whole, fmt.Errorf("%s: %w", path, err)
		}
		verbs = append(verbs, v)
		whole += int64(len(line))
	}
}

// obey writes changes to a store that only this process can write.
func obey(ctx context.Context, connector kvdbsync.Connector, in io.Reader, out io.Writer) error {
	writer, _ := connector.(kvdbsync.Writer)
	lines := bufio.NewScanner(in)
	// The default of bufio.Scanner, 64 KiB, is smaller than one group of changes.
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var changes []history.Change
		if err := json.Unmarshal(lines.Bytes(), &changes); err != nil {
			return err
		}
		answer := ""
		if err := writer.Apply(ctx, stores.PairsOf(changes)); err != nil {
			answer = err.Error()
		}
		if _, err := fmt.Fprintf(out, "%q\n", answer); err != nil {
			return err
		}
	}
	// An error even at the end of input: it ends the agent of this process as well.
	return errors.Join(lines.Err(), fs.ErrClosed)
}
