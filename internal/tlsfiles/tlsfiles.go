// Package tlsfiles makes the TLS configuration of a client or a server from files in PEM.
//
// Each error names the configuration key and the file. Load reads the files at
// each call, so a caller that loads for each connection follows renewed certificates.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/keyplane/keyplane/internal/settingfile"
)

// Files are the TLS settings of a client. The zero value trusts the system's authorities
// and shows no certificate.
type Files struct {
	CA         string // authorities to trust. Defaults to those of the system
	Cert, Key  string // the client's certificate and its private key: both or neither
	SkipVerify bool   // do not verify the server's certificate
	// Prefix comes before the keys in errors: with "tls." they are tls.ca-file,
	// tls.cert-file and tls.key-file. Defaults to none.
	Prefix string
}

// Validate reports a certificate without a key, or a key without a certificate. It reads
// no file.
func (f Files) Validate() error {
	if (f.Cert == "") != (f.Key == "") {
		return fmt.Errorf("%scert-file %q, %skey-file %q: expected both or neither", f.Prefix, f.Cert, f.Prefix, f.Key)
	}
	return nil
}

// Load reads the files. The configuration allows TLS 1.2 and newer. The caller owns it.
func (f Files) Load() (*tls.Config, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: f.SkipVerify} //nolint:gosec // the user asks for it by name; the default is to verify
	if f.Cert != "" {
		pair, err := f.Pair()
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if f.CA == "" {
		return c, nil
	}
	text, err := settingfile.Read(f.CA)
	if err != nil {
		return nil, fmt.Errorf("%sca-file: %w", f.Prefix, err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%sca-file: %s has no certificate: expected PEM", f.Prefix, f.CA)
	}
	return c, nil
}

// Pair reads the client's certificate and key, for tls.Config.GetClientCertificate.
func (f Files) Pair() (tls.Certificate, error) {
	cert, err := settingfile.Read(f.Cert)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%scert-file: %w", f.Prefix, err)
	}
	key, err := settingfile.Read(f.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%skey-file: %w", f.Prefix, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%scert-file %s and %skey-file %s: %w", f.Prefix, f.Cert, f.Prefix, f.Key, err)
	}
	return pair, nil
}
