package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/keyplane/keyplane/internal/settingfile"
)

// A Server is the TLS settings of a server. The zero value is a server without TLS.
type Server struct {
	Cert, Key string   // the server's certificate and its private key: both or neither
	ClientCAs []string // authorities of clients. If there are any, each client must show a certificate
	Protocols []string // that the server speaks (ALPN, RFC 7301), such as h2

	// Names of the configuration keys, for errors. They default to cert-file, key-file
	// and ca-files.
	CertName, KeyName, CAName string
}

// names returns the settings with the default names.
func (s Server) names() Server {
	for at, name := range map[*string]string{&s.CertName: "cert-file", &s.KeyName: "key-file", &s.CAName: "ca-files"} {
		if *at == "" {
			*at = name
		}
	}
	return s
}

// Enabled reports whether the settings ask for TLS.
func (s Server) Enabled() bool { return s.Cert != "" || s.Key != "" || len(s.ClientCAs) > 0 }

// Load reads the files, and returns nil if TLS is not enabled. Each handshake reads
// them again, so that renewed certificates need no restart. If that fails, handshakes
// fail, and the error is the text of the TLS alert's cause in the server's log.
func (s Server) Load() (*tls.Config, error) {
	if !s.Enabled() {
		return nil, nil
	}
	s = s.names()
	first, err := s.read()
	if err != nil {
		return nil, err
	}
	out := first.Clone()
	out.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.read() }
	return out, nil
}

// read reads the files once. The configuration allows TLS 1.2 and newer.
func (s Server) read() (*tls.Config, error) {
	switch {
	case s.Cert == "" && s.Key == "":
		return nil, fmt.Errorf("%s: a server that verifies clients needs %s and %s", s.CAName, s.CertName, s.KeyName)
	case s.Cert == "" || s.Key == "":
		return nil, fmt.Errorf("%s %q, %s %q: expected both or neither", s.CertName, s.Cert, s.KeyName, s.Key)
	}
	pair, err := s.pair()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: s.Protocols}
	if len(s.ClientCAs) == 0 {
		return c, nil
	}
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	for i, path := range s.ClientCAs {
		text, err := settingfile.Read(path)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", s.CAName, i, err)
		}
		if !c.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s[%d]: %s has no certificate: expected PEM", s.CAName, i, path)
		}
	}
	return c, nil
}

// pair reads the certificate and its key.
func (s Server) pair() (tls.Certificate, error) {
	cert, certErr := settingfile.Read(s.Cert)
	if certErr != nil {
		certErr = fmt.Errorf("%s: %w", s.CertName, certErr)
	}
	key, keyErr := settingfile.Read(s.Key)
	if keyErr != nil {
		keyErr = fmt.Errorf("%s: %w", s.KeyName, keyErr)
	}
	if err := errors.Join(certErr, keyErr); err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s %s and %s %s: %w", s.CertName, s.Cert, s.KeyName, s.Key, err)
	}
	return pair, nil
}
