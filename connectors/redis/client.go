package redis

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// LogTo makes the client library speak through log, at level debug: what matters
// of it is in the errors too. It prints on standard error otherwise. It is one
// logger for the whole program, so this is for main.
func LogTo(log *slog.Logger) { goredis.SetLogger(libraryLog{log}) }

type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "redis client", "what", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// An access is a configuration whose files could be read. They are read again for
// each connection, so they may be exchanged while it is used.
type access struct{ Config }

func (c Config) access() (access, error) {
	err := c.Validate()
	if err == nil {
		_, err = c.password()
	}
	if err == nil {
		_, err = c.TLS.config()
	}
	if err != nil {
		return access{}, fmt.Errorf("redis configuration: %w", err)
	}
	return access{c}, nil
}

// credentials are those of the moment.
func (a access) credentials(context.Context) (user, password string, err error) {
	password, err = a.password()
	return a.Username, password, err
}

// node is for one server, by connections that dial opens. It does not try again:
// whoever watches starts over, and whoever asks is told.
func (a access) node(addr string, dial dialFunc) *goredis.Options {
	return &goredis.Options{
		Addr: addr, DB: a.DB, CredentialsProviderContext: a.credentials,
		Dialer: dial, DialTimeout: a.DialTimeout, DialerRetries: 1,
		ReadTimeout: a.ReadTimeout, WriteTimeout: a.WriteTimeout,
		MaxRetries: -1, ConnMaxIdleTime: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// sentinel is for a Sentinel.
func (a access) sentinel(addr string, dial dialFunc) *goredis.Options {
	o := a.node(addr, dial)
	o.DB, o.CredentialsProviderContext = 0, nil
	o.Username, o.Password = a.SentinelUsername, a.SentinelPassword
	return o
}

// toCluster is a client that follows keys to where they are.
func (a access) toCluster(dial dialFunc) *goredis.ClusterOptions {
	return &goredis.ClusterOptions{
		Addrs: slices.Clone(a.Endpoints), CredentialsProviderContext: a.credentials,
		Dialer: dial, DialTimeout: a.DialTimeout, DialerRetries: 1,
		ReadTimeout: a.ReadTimeout, WriteTimeout: a.WriteTimeout,
		MaxRedirects:             a.MaxRedirects,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
