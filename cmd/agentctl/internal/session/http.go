package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/bounded"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// WithAgent wraps a command that queries the agent: it sets s.target, applies the timeout
// and closes idle connections at the end.
func (s *Session) WithAgent(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return s.WithAgentUntil(0, f)
}

// WithAgentUntil is WithAgent with time after the timeout, for commands that obey the timeout
// themselves and then tell what is missing.
func (s *Session) WithAgentUntil(after time.Duration, f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), s.Timeout+after)
		defer cancel()
		return s.onAgent(ctx, args, f)
	}
}

// onAgent runs a command that queries the agent.
func (s *Session) onAgent(ctx context.Context, args []string, f func(ctx context.Context, args []string) error) error {
	at, err := s.agent(ctx)
	if err != nil {
		return err
	}
	defer s.reach(ctx, at)()
	return f(ctx, args)
}

// reach makes requests reach the agent at. The caller calls end after the last one.
func (s *Session) reach(ctx context.Context, at *agentClient) (end func()) {
	s.target = at
	s.types = &typesOfAgent{get: func(path string, into any) error { return s.Get(ctx, path, nil, into) }}
	return at.http.CloseIdleConnections
}

// ReachStoreAgent makes Get and Request reach the agent that uses the store or, if the store is
// etcd, the agent that the settings name. Commands within WithStore may call it, and call end
// after their last request.
func (s *Session) ReachStoreAgent(ctx context.Context) (end func(), err error) {
	at := s.agentBySocket()
	if !s.ofAgent {
		if at, err = s.agent(ctx); err != nil {
			return nil, err
		}
	}
	return s.reach(ctx, at), nil
}

// Get queries the agent and decodes the JSON answer.
func (s *Session) Get(ctx context.Context, path string, query url.Values, into any) error {
	return s.Request(ctx, http.MethodGet, path, query, nil, into)
}

// Secrets returns the argument secrets of a request: 1 shows secrets, and 0 hides them. Without it the
// kind of the connection decides, which the user of a command does not see.
func Secrets(shown bool) string {
	if shown {
		return "1"
	}
	return "0"
}

// Request sends a request to the agent. A *string receives the answer as text, other values
// of into as JSON. Text from the agent within errors is on one line.
func (s *Session) Request(ctx context.Context, method, path string, query url.Values, body []byte, into any) error {
	answer, err := s.send(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	// The API answers nothing else for a success.
	if answer.StatusCode != http.StatusOK {
		return s.target.responseError(answer)
	}
	text, plain := into.(*string)
	if plain {
		var all []byte
		all, err = io.ReadAll(bounded.Reader(answer.Body, s.target.most))
		*text = string(all)
	} else {
		err = json.NewDecoder(bounded.Reader(answer.Body, s.target.most)).Decode(into)
	}
	if err != nil {
		return fmt.Errorf("unexpected answer from %s: %w", s.target.name, err)
	}
	return nil
}

// Probe is Get for a path of which the status tells the state of the agent, such as /readiness:
// the agent answers the same JSON with status 500.
func (s *Session) Probe(ctx context.Context, path string, into any) error {
	answer, err := s.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusInternalServerError {
		return s.target.responseError(answer)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostError))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("unexpected answer from %s: %w", s.target.name, err)
	}
	return nil
}

// send sends a request to the agent. The caller closes the body of the answer.
func (s *Session) send(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Response, error) {
	at := s.target
	// A copy: the client is used for several requests.
	where := at.URL
	where.Path, where.RawQuery = path, query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, where.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if s.labelGiven {
		request.Header.Set(wire.LabelHeader, s.Label)
	}
	answer, err := at.http.Do(request)
	if err != nil {
		return nil, RemoteError{at.requestError(err)}
	}
	if label := answer.Header.Get(wire.LabelHeader); label != "" {
		s.agentLabel = label
	}
	return answer, nil
}

// mostError is the number of bytes that are read of an answer that reports a state or an error.
const mostError = 1 << 20

// responseError turns an answer with a status other than 200 into an error. Agents answer
// JSON with a message. Other bodies come from a proxy or from another server on that port.
func (at *agentClient) responseError(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostError))
	if err != nil {
		return fmt.Errorf("%s: %w", answer.Status, err)
	}
	var failure struct {
		Error, Message string
		Failed         []wire.Invalid
	}
	if json.Unmarshal(text, &failure) == nil && failure.Error+failure.Message != "" {
		return StatusError{answer.StatusCode, failure.Failed, failureText(failure.Error+failure.Message, failure.Failed)}
	}
	if answer.StatusCode == http.StatusUnauthorized {
		return errors.New("the agent requires authentication: expected --http-basic-auth-file FILE (or --http-basic-auth USER:PASSWORD) with a user that it knows")
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		return fmt.Errorf("the server at %s is not an agent: %s", at.name, answer.Status)
	}
	return fmt.Errorf("%s: %s", show.Line(answer.Status), show.Remote(string(bytes.TrimSpace(text))))
}

// failureText returns the error of an answer. The list of a failed transaction, which is for programs, becomes a
// line for each value.
func failureText(text string, failed []wire.Invalid) error {
	if len(failed) == 0 || !strings.HasPrefix(text, "KeyErrors: ") {
		return errors.New(show.Remote(text))
	}
	var b strings.Builder
	for _, f := range failed {
		b.WriteString("\n  ")
		if f.Key != "" {
			b.WriteString(show.Line(f.Key) + ": ")
		}
		b.WriteString(show.Remote(f.Error))
	}
	return errors.New("values failed:" + b.String())
}

// A StatusError is an error that an agent answered, with the status of HTTP.
type StatusError struct {
	// Commands compare it: 404 means that an agent of an earlier release lacks the path.
	Status int
	// Failed are the values that caused the error; nil: none are known.
	Failed []wire.Invalid
	error
}

// Unwrap returns the error without the status.
func (e StatusError) Unwrap() error { return e.error }

// A RemoteError is an error that contains text from outside. Its message is on one line.
type RemoteError struct{ error }

// Error implements error.
func (e RemoteError) Error() string { return show.Remote(e.error.Error()) }

// Unwrap returns the original error.
func (e RemoteError) Unwrap() error { return e.error }

// CopyText prints an answer that the agent gives as text: query gets the format text.
func (s *Session) CopyText(ctx context.Context, method, path string, query url.Values, body []byte) error {
	query.Set("format", "text")
	var text string
	if err := s.Request(ctx, method, path, query, body, &text); err != nil {
		return err
	}
	_, err := io.WriteString(s.Out, printable.Text(text)) // the agent has escaped line feeds that belong to values
	return err
}
