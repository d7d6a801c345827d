package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire/stream"
)

const (
	// retryPause is the time between attempts to reach a lost agent, and pollPause that between
	// questions to an agent of an earlier release, which has no stream of events.
	retryPause, pollPause = 2 * time.Second, 2 * time.Second
	// silence is the time without any text after which a stream is regarded as lost. Agents send
	// a comment every 15 s.
	silence = time.Minute
	// mostEvent is the size of the largest event, in bytes. Agents send at most 256 keys in one.
	mostEvent = 4 << 20
)

// News are changes of the agent since the news before.
type News struct {
	// Again means that anything may have changed: at the beginning, after an interruption, or
	// if the agent could not name all changes. Everything that is shown must be read again.
	Again bool
	Keys  []string // of values with another state or content
	// Sources means that a source has another state or content.
	Sources bool
}

// WithAgentWhile is WithAgent for commands that may follow the agent until they are
// interrupted. If *follow is set when the command runs, the timeout only counts if it is on
// the command line.
func (s *Session) WithAgentWhile(follow *bool, f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if !*follow || cmd.Flags().Changed("timeout") {
			return s.WithAgent(f)(cmd, args)
		}
		return s.onAgent(cmd.Context(), args, f)
	}
}

// Follow calls f with the news of the agent, first with Again, until ctx ends; that is no error.
// It reads the agent's events. Agents without events are asked again and again. Each time the agent is
// lost after the first news, Follow says so once on standard error and tries again. An error of f
// ends it, unless it is one of the connection.
func (s *Session) Follow(ctx context.Context, f func(context.Context, News) error) error {
	known := false // the agent has answered once
	lost := false  // the user knows that the agent does not answer
	limited := func(ctx context.Context, n News) error {
		ctx, cancel := context.WithTimeout(ctx, s.Timeout)
		defer cancel()
		err := f(ctx, n)
		if err == nil {
			known, lost = true, false
		}
		return err
	}
	follow := s.stream
	for {
		err := follow(ctx, limited)
		if status, ok := errors.AsType[StatusError](err); ok && status.Status == http.StatusNotFound && !known {
			follow = poll
			err = poll(ctx, limited)
		}
		_, remote := errors.AsType[RemoteError](err)
		switch {
		case ctx.Err() != nil:
			return nil
		case !known || !remote:
			return err
		case !lost:
			lost = true
			fmt.Fprintln(s.Err, "agentctl: trying again:", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPause):
		}
	}
}

// poll calls f regularly until an error, or until ctx ends.
func poll(ctx context.Context, f func(context.Context, News) error) error {
	for {
		if err := f(ctx, News{Again: true}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollPause):
		}
	}
}

// stream calls f for each event of one connection. It returns a RemoteError when the connection
// ends.
func (s *Session) stream(ctx context.Context, f func(context.Context, News) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer, err := s.send(ctx, http.MethodGet, "/events", nil, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return s.target.responseError(answer)
	}
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, mostEvent)
	var name, data string
	for lines.Scan() {
		watchdog.Reset(silence)
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			data = value // agents send JSON on one line
		case "":
			if lines.Text() != "" || name == "" {
				continue // a comment
			}
			n, err := newsOf(name, data)
			if err == nil && n.any() {
				watchdog.Stop() // f has a timeout of its own
				err = f(ctx, n)
				watchdog.Reset(silence)
			}
			if err != nil {
				return err
			}
			name, data = "", ""
		}
	}
	err = lines.Err()
	if err == nil {
		err = io.EOF
	}
	return RemoteError{fmt.Errorf("the agent at %s has ended the stream of events: %w", s.target.name, err)}
}

// any reports whether there are news.
func (n News) any() bool { return n.Again || n.Sources || len(n.Keys) > 0 }

// newsOf decodes an event. Events that do not concern values or sources, or that only later
// releases have, are no news.
func newsOf(name, data string) (out News, err error) {
	switch name {
	case stream.NameHello:
		out.Again = true
	case stream.NameValues:
		var v stream.ValuesChanged
		err = json.Unmarshal([]byte(data), &v)
		out.Again = v.Missed
		for _, c := range v.Changed {
			out.Keys = append(out.Keys, c.Key)
		}
	case stream.NameSources:
		out.Sources = true
	}
	if err != nil {
		return News{}, fmt.Errorf("event %s: %w", name, err)
	}
	return out, nil
}
