package redis

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/keyplane/keyplane/internal/tlsfiles"
)

// dial opens a connection, with TLS if that is enabled.
func (t TLS) dial(ctx context.Context, plain *net.Dialer, network, addr string) (net.Conn, error) {
	cfg, err := t.config()
	switch {
	case err != nil:
		return nil, err
	case cfg == nil:
		return plain.DialContext(ctx, network, addr)
	}
	return (&tls.Dialer{NetDialer: plain, Config: cfg}).DialContext(ctx, network, addr)
}

// config returns nil if TLS is disabled.
func (t TLS) config() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	return t.files().Load()
}

// files returns the settings in the form of package tlsfiles, which errors name with
// "tls.".
func (t TLS) files() tlsfiles.Files {
	return tlsfiles.Files{CA: t.CAFile, Cert: t.CertFile, Key: t.KeyFile, SkipVerify: t.SkipVerify, Prefix: "tls."}
}
