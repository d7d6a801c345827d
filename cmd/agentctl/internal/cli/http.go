package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
)

// looking is the frame of the commands that look at the agent: a limit of time.
func (a *app) looking(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), a.Timeout)
		defer cancel()
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
	at := url.URL{Scheme: "http", Host: net.JoinHostPort(a.Host, strconv.Itoa(a.HTTPPort)), Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return a.unanswered(at.Host, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return refusal(answer)
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
		return fmt.Errorf("answer of the agent at %s: %w", at.Host, err)
	}
	return nil
}

func (a *app) unanswered(host string, err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no agent listens at %s: is it running, and is its http.conf the same?", host)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the agent at %s does not answer within %v: %w", host, a.Timeout, err)
	}
	return fmt.Errorf("agent at %s: %w", host, err)
}

// refusal is what the agent says is wrong.
func refusal(answer *http.Response) error {
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return fmt.Errorf("%s: %w", answer.Status, err)
	}
	var said struct{ Error, Message string }
	if json.Unmarshal(text, &said) == nil && said.Error+said.Message != "" {
		return errors.New(said.Error + said.Message)
	}
	return fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(text))
}
