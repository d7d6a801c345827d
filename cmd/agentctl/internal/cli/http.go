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
)

// looking is the frame of the commands that look at the agent: the way to it, and a
// limit of time.
func (a *app) looking(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), a.Timeout)
		defer cancel()
		at, err := a.agent()
		if err != nil {
			return err
		}
		defer at.client.CloseIdleConnections()
		a.at = at
		return f(ctx, args)
	}
}

// get asks the agent, and reads the JSON that it answers.
func (a *app) get(ctx context.Context, path string, query url.Values, into any) error {
	return a.ask(ctx, http.MethodGet, path, query, nil, into)
}

// ask asks the agent. What it answers goes into a *string as it is, into anything
// else as JSON.
func (a *app) ask(ctx context.Context, method, path string, query url.Values, body []byte, into any) error {
	at := a.at
	where := at.URL
	where.Path, where.RawQuery = path, query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, where.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := at.client.Do(request)
	if err != nil {
		return remoteError{at.unanswered(err)}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return at.refusal(answer)
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
		return fmt.Errorf("what %s answers is not what an agent does: %w", at.name, err)
	}
	return nil
}

// refusal is what the agent says is wrong.
func (at *agentAt) refusal(answer *http.Response) error {
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return fmt.Errorf("%s: %w", answer.Status, err)
	}
	var said struct{ Error, Message string }
	if json.Unmarshal(text, &said) == nil && said.Error+said.Message != "" {
		return errors.New(remote(said.Error + said.Message))
	}
	if answer.StatusCode == http.StatusUnauthorized {
		return errors.New("the agent asks who you are: expected --http-basic-auth-file FILE (or --http-basic-auth USER:PASSWORD) that it knows")
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		return fmt.Errorf("what listens at %s is no agent: %s", at.name, answer.Status)
	}
	return fmt.Errorf("%s: %s", oneLine(answer.Status), remote(string(bytes.TrimSpace(text))))
}

// A remoteError is an error with text from outside, on one line.
type remoteError struct{ error }

func (e remoteError) Error() string { return remote(e.error.Error()) }

func (e remoteError) Unwrap() error { return e.error }

// remote is an error from outside on one line: its line feeds may not be its own.
func remote(text string) string { return oneLine(strings.ReplaceAll(text, "\n", "; ")) }
