package cli

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

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// withAgent wraps a command that queries the agent: it sets a.target, applies the timeout
// and closes idle connections at the end.
func (a *app) withAgent(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), a.Timeout)
		defer cancel()
		at, err := a.agent(ctx)
		if err != nil {
			return err
		}
		defer at.http.CloseIdleConnections()
		a.target = at
		a.types = &typesOfAgent{get: func(path string, into any) error { return a.get(ctx, path, nil, into) }}
		return f(ctx, args)
	}
}

// get queries the agent and decodes the JSON answer.
func (a *app) get(ctx context.Context, path string, query url.Values, into any) error {
	return a.request(ctx, http.MethodGet, path, query, nil, into)
}

// request sends a request to the agent. A *string receives the answer as text, other values
// of into as JSON. Text from the agent within errors is on one line.
func (a *app) request(ctx context.Context, method, path string, query url.Values, body []byte, into any) error {
	at := a.target
	// A copy: the client is used for several requests.
	where := at.URL
	where.Path, where.RawQuery = path, query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, where.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	if a.labelGiven {
		request.Header.Set(wire.LabelHeader, a.Label)
	}
	answer, err := at.http.Do(request)
	if err != nil {
		return remoteError{at.requestError(err)}
	}
	defer answer.Body.Close()
	// The API answers nothing else for a success.
	if answer.StatusCode != http.StatusOK {
		return at.responseError(answer)
	}
	text, plain := into.(*string)
	if plain {
		var all []byte
		all, err = io.ReadAll(answer.Body)
		*text = string(all)
	} else {
		err = json.NewDecoder(answer.Body).Decode(into)
	}
	if err != nil {
		return fmt.Errorf("unexpected answer from %s: %w", at.name, err)
	}
	return nil
}

// responseError turns an answer with a status other than 200 into an error. Agents answer
// JSON with a message. Other bodies come from a proxy or from another server on that port.
func (at *agentClient) responseError(answer *http.Response) error {
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return fmt.Errorf("%s: %w", answer.Status, err)
	}
	var failure struct{ Error, Message string }
	if json.Unmarshal(text, &failure) == nil && failure.Error+failure.Message != "" {
		return statusError{answer.StatusCode, errors.New(remote(failure.Error + failure.Message))}
	}
	if answer.StatusCode == http.StatusUnauthorized {
		return errors.New("the agent requires authentication: expected --http-basic-auth-file FILE (or --http-basic-auth USER:PASSWORD) with a user that it knows")
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		return fmt.Errorf("the server at %s is not an agent: %s", at.name, answer.Status)
	}
	return fmt.Errorf("%s: %s", oneLine(answer.Status), remote(string(bytes.TrimSpace(text))))
}

// A statusError is an error that an agent answered, with the status of HTTP.
type statusError struct {
	// Commands compare it: 404 means that an agent of an earlier release lacks the path.
	status int
	error
}

// Unwrap returns the error without the status.
func (e statusError) Unwrap() error { return e.error }

// A remoteError is an error that contains text from outside. Its message is on one line.
type remoteError struct{ error }

// Error implements error.
func (e remoteError) Error() string { return remote(e.error.Error()) }

// Unwrap returns the original error.
func (e remoteError) Unwrap() error { return e.error }

// remote returns text of an error from outside on one line, because its line feeds may come
// from a value.
func remote(text string) string { return oneLine(strings.ReplaceAll(text, "\n", "; ")) }
