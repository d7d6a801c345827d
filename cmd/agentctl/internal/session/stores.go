package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// open connects to the configured store. The caller calls end after use.
func (s *Session) open(ctx context.Context) (store kvdbsync.Store, end func(), err error) {
	s.ofAgent = s.Store != "etcd"
	if s.Store == "" {
		if err := s.chooseStore(ctx); err != nil {
			return nil, nil, err
		}
	}
	if s.ofAgent {
		c := kvdb.NewClient(s.Socket, s.Store)
		return c, c.Close, nil
	}
	return s.openEtcd(ctx)
}

// chooseStore sets the store, as the user names none. It is one of the agent, or the etcd that vpp-agent
// 3.5 used without asking an agent. But a socket that the user names is that of the one agent that is meant.
func (s *Session) chooseStore(ctx context.Context) (err error) {
	s.Store, err = s.onlyStore(ctx)
	if errors.Is(err, kvdb.ErrNoStore) && !s.bySocket {
		s.Store, s.ofAgent, err = "etcd", false, nil
		fmt.Fprintf(s.Err, "agentctl: the agent at %s has no store of its own; this is etcd at %s (--etcd-endpoints)\n", s.Socket, strings.Join(s.Endpoints, ", "))
	}
	return err
}

// onlyStore returns the store of the agent behind the socket. Of several, it is the one with the highest
// priority that can be written. Agents of earlier releases do not tell priorities: it is bolt there.
func (s *Session) onlyStore(ctx context.Context) (string, error) {
	c := kvdb.NewClient(s.Socket, "")
	defer c.Close()
	names, err := c.Stores(ctx)
	if err == nil && len(names) > 1 {
		if name, err := s.writable(ctx, c); name != "" || err != nil {
			return name, err
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(names) == 1:
		return names[0], nil
	case slices.Contains(names, "bolt"):
		return "bolt", nil
	case len(names) == 0:
		return "", fmt.Errorf("%w: the agent at %s has none", kvdb.ErrNoStore, s.Socket)
	}
	return "", fmt.Errorf("the agent at %s has several stores: expected --store with one of %s", s.Socket, strings.Join(names, ", "))
}

// etcd returns the configuration of the etcd client.
func (s *settings) etcd() etcd.Config {
	return etcd.Config{
		Endpoints:         s.tlsEndpoints(s.Endpoints),
		DialTimeout:       s.DialTimeout,
		InsecureTransport: s.TLS.Disabled.value && !s.Insecure,
		InsecureSkip:      s.TLS.SkipVerify || s.Insecure,
		CertFile:          s.TLS.CertFile,
		KeyFile:           s.TLS.KeyFile,
		CAFile:            s.TLS.CAFile,
	}
}

// tlsEndpoints returns the endpoints as https URLs if TLS is enabled. The etcd client
// chooses TLS by the scheme.
func (s *settings) tlsEndpoints(endpoints []string) []string {
	if !s.Insecure && !s.TLS.enabled() {
		return endpoints
	}
	var out []string
	for _, e := range endpoints {
		if !strings.Contains(e, "://") {
			e = "https://" + e
		}
		out = append(out, e)
	}
	return out
}

// explainStoreError names the server that did not answer, and other ways to reach the store.
func (s *settings) explainStoreError(err error) error {
	if errors.Is(err, kvdb.ErrNoStore) {
		return fmt.Errorf("%w: --store selects another; --store etcd needs no agent", err)
	}
	if errors.Is(err, kvdb.ErrNoAgent) && s.Store == "" {
		return fmt.Errorf("%w (--store etcd needs no agent)", err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if !s.ofAgent {
		return fmt.Errorf("etcd at %s does not answer: %w", strings.Join(s.Endpoints, ", "), err)
	}
	return fmt.Errorf("the agent does not answer: %w", err)
}

// WithStore wraps a command that needs a store: it opens the store, applies the timeout, and
// closes the store at the end.
func (s *Session) WithStore(f func(context.Context, kvdbsync.Store, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), s.Timeout)
		defer cancel()
		store, end, err := s.open(ctx)
		if err != nil {
			return RemoteError{s.explainStoreError(err)}
		}
		defer end()
		return s.fromStore(f(ctx, store, args))
	}
}

// fromStore returns an error of a command as one of the store, unless the command is done.
func (s *Session) fromStore(err error) error {
	if isDone(err) {
		return err
	}
	return RemoteError{s.explainStoreError(err)}
}

// isDone reports that the error of a command that used a store is none of the store: its text is printed as it is, or
// it only says that there are changes.
func isDone(err error) bool {
	_, printable := errors.AsType[linesError](err)
	return printable || WithoutChanges(err) == nil
}
