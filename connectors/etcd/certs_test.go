package etcd_test

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

type certificates struct {
	ca             string
	server, client keyPair
}

type keyPair struct{ cert, key string }

// makeCertificates makes an authority, and a certificate of it for each side.
func makeCertificates(t *testing.T) certificates {
	t.Helper()
	a := authority{t: t, dir: t.TempDir()}
	root := a.template("authority")
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert, a.key = root, a.newKey()
	var all certificates
	all.ca = a.write("ca.pem", "CERTIFICATE", a.sign(root, a.key.Public()))
	all.server, all.client = a.issue("server"), a.issue("client")
	return all
}

type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

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

func (a *authority) issue(name string) keyPair {
	a.t.Helper()
	key := a.newKey()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return keyPair{
		cert: a.write(name+".pem", "CERTIFICATE", a.sign(a.template(name), key.Public())),
		key:  a.write(name+".key", "EC PRIVATE KEY", der),
	}
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) sign(cert *x509.Certificate, public crypto.PublicKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, public, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}
