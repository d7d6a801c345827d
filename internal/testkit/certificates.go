package testkit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are PEM files of an authority, and of a key pair for each side of a
// connection to 127.0.0.1.
type Certificates struct {
	CA             string
	Server, Client KeyPair
}

// A KeyPair is a certificate and its private key.
type KeyPair struct{ Cert, Key string }

// MakeCertificates creates a new authority with each call.
func MakeCertificates(t testing.TB) *Certificates {
	t.Helper()
	a := authority{t: t, dir: t.TempDir()}
	root := a.template("authority")
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert, a.key = root, a.newKey()
	return &Certificates{
		CA:     a.write("ca.pem", "CERTIFICATE", a.sign(root, a.key.Public())),
		Server: a.issue("server"), Client: a.issue("client"),
	}
}

// An authority signs certificates for one test.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// template returns a certificate for a server and a client at 127.0.0.1. It is valid from an hour ago until an hour from now.
func (a *authority) template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
}

// issue makes a key, signs its certificate, and writes both.
func (a *authority) issue(name string) KeyPair {
	a.t.Helper()
	key := a.newKey()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return KeyPair{
		Cert: a.write(name+".pem", "CERTIFICATE", a.sign(a.template(name), key.Public())),
		Key:  a.write(name+".key", "EC PRIVATE KEY", der),
	}
}

// newKey makes an ECDSA key: that is much faster than an RSA key.
func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

// sign returns the DER form of cert, signed by the authority.
func (a *authority) sign(cert *x509.Certificate, public crypto.PublicKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, public, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

// write writes a PEM file that only this user can read, as servers require of keys.
func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}
