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

// LogTo sends the client library's messages to log, at level debug; errors repeat the
// important ones. By default the library prints on standard error. The library has one
// logger for the whole program, so only main should call LogTo.
func LogTo(log *slog.Logger) { goredis.SetLogger(libraryLog{log}) }

// A libraryLog takes the texts of the client library, which have no levels, as debug
// records.
type libraryLog struct{ log *slog.Logger }

// Printf implements the library's interface of a logger.
func (l libraryLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "redis client", "what", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// An access is a configuration with readable files. The files are read again for each
// connection, so they may be replaced at any time.
type access struct{ Config }

// access reads the files that the configuration names.
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

// credentials returns the current user and password.
func (a access) credentials(context.Context) (user, password string, err error) {
	password, err = a.password()
	return a.Username, password, err
}

// node returns the options for one server, with connections that dial opens. They disable
// retries: a watch starts over, and so does the search for a master. A Client enables them, also
// that of a Cluster, except for writes that are onlyOnce.
func (a access) node(addr string, dial dialFunc) *goredis.Options {
	return &goredis.Options{
		Addr: addr, DB: a.DB, CredentialsProviderContext: a.credentials,
		Dialer: dial, DialTimeout: a.DialTimeout, DialerRetries: 1,
		ReadTimeout: a.ReadTimeout, WriteTimeout: a.WriteTimeout,
		MaxRetries: -1, ConnMaxIdleTime: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// sentinel returns the options for a Sentinel.
func (a access) sentinel(addr string, dial dialFunc) *goredis.Options {
	o := a.node(addr, dial)
	o.DB, o.CredentialsProviderContext = 0, nil
	o.Username, o.Password = a.SentinelUsername, a.SentinelPassword
	return o
}

// toCluster returns the options for a Cluster; its client follows keys to their nodes. It does
// not split commands of several keys: for that the library makes other commands, which lose
// onlyOnce and the redirection of MOVED.
func (a access) toCluster(dial dialFunc) *goredis.ClusterOptions {
	return &goredis.ClusterOptions{
		Addrs: slices.Clone(a.Endpoints), CredentialsProviderContext: a.credentials,
		Dialer: dial, DialTimeout: a.DialTimeout, DialerRetries: 1,
		ReadTimeout: a.ReadTimeout, WriteTimeout: a.WriteTimeout,
		MaxRedirects: a.MaxRedirects, DisableRoutingPolicies: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
