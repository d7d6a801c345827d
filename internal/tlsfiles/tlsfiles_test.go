package tlsfiles_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/tlsfiles"
)

func TestLoad(t *testing.T) {
	files := testkit.MakeCertificates(t)
	c, err := tlsfiles.Files{CA: files.CA, Cert: files.Client.Cert, Key: files.Client.Key}.Load()
	if err != nil || c.RootCAs == nil || len(c.Certificates) != 1 || c.InsecureSkipVerify {
		t.Errorf("got %+v, %v", c, err)
	}
	c, err = tlsfiles.Files{SkipVerify: true}.Load()
	if err != nil || c.RootCAs != nil || len(c.Certificates) != 0 || !c.InsecureSkipVerify {
		t.Errorf("without files: got %+v, %v", c, err)
	}
}

func TestErrorsNameKeyAndFile(t *testing.T) {
	files := testkit.MakeCertificates(t)
	garbage := filepath.Join(t.TempDir(), "garbage.pem")
	if err := os.WriteFile(garbage, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		files tlsfiles.Files
		want  string
	}{
		"CA missing":          {tlsfiles.Files{CA: "/nowhere/ca"}, "ca-file: open /nowhere/ca: no such file or directory"},
		"CA without PEM":      {tlsfiles.Files{CA: garbage, Prefix: "tls."}, "tls.ca-file: " + garbage + " has no certificate: expected PEM"},
		"certificate alone":   {tlsfiles.Files{Cert: "c"}, `cert-file "c", key-file "": expected both or neither`},
		"key alone":           {tlsfiles.Files{Key: "k", Prefix: "tls."}, `tls.cert-file "", tls.key-file "k": expected both or neither`},
		"certificate missing": {tlsfiles.Files{Cert: "/nowhere/c", Key: files.Client.Key}, "cert-file: open /nowhere/c: no such file or directory"},
		"key missing":         {tlsfiles.Files{Cert: files.Client.Cert, Key: "/nowhere/k"}, "key-file: open /nowhere/k: no such file or directory"},
		"pair without PEM": {tlsfiles.Files{Cert: garbage, Key: garbage},
			"cert-file " + garbage + " and key-file " + garbage + ": tls: failed to find any PEM data in certificate input"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := test.files.Load(); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
