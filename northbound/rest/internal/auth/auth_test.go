package auth

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/crypto/bcrypt"
)

const key = "0123456789abcdef0123456789abcdef"

func hash(t *testing.T, password string) string {
	t.Helper()
	out, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// tokens returns a guard with the user ann, who may dump.
func tokens(t *testing.T) *Guard {
	t.Helper()
	g, err := New(Config{Tokens: true, SignKey: key, HashCost: bcrypt.MinCost, Groups: []string{"dump", "info"},
		Users: []User{{"ann", hash(t, "pass"), []string{"dump"}}, {"root", hash(t, "word"), []string{Admin}}}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func request(header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func TestBasic(t *testing.T) {
	g, err := New(Config{Basic: []string{"ann:pass:word"}})
	if err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]error{"pass:word": nil, "pass": ErrUnknown, "": ErrUnknown} {
		r := request()
		r.SetBasicAuth("ann", password)
		if u, err := g.User(r); !errors.Is(err, want) || err == nil && !u.May("anything") {
			t.Errorf("%q: %v, %v", password, u, err)
		}
	}
	r := request()
	r.SetBasicAuth("bob", "")
	if _, err := g.User(r); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := g.User(request()); !errors.Is(err, ErrUnknown) {
		t.Errorf("nobody: %v", err)
	}
	if !strings.HasPrefix(g.Challenge(), "Basic") {
		t.Errorf("the challenge is %s", g.Challenge())
	}
}

// TestToken logs in, uses the token in both ways, and logs out.
func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := tokens(t)
		if _, _, err := g.Login("ann", "wrong"); !errors.Is(err, ErrUnknown) {
			t.Errorf("a wrong password: %v", err)
		}
		if _, _, err := g.Login("bob", "nobody has this password"); !errors.Is(err, ErrUnknown) {
			t.Errorf("an unknown name: %v", err)
		}
		token, expires, err := g.Login("ann", "pass")
		if err != nil || time.Until(expires) != time.Hour {
			t.Fatal(expires, err)
		}
		for _, r := range []*http.Request{request("Authorization", "bearer "+token), request("Cookie", Cookie+"="+token)} {
			u, err := g.User(r)
			if err != nil || u.Name != "ann" || !u.May("dump") || u.May("info") {
				t.Errorf("got %v, %v", u, err)
			}
		}
		second, _, err := g.Login("root", "word")
		if u, err2 := g.User(request("Cookie", Cookie+"="+second)); err != nil || err2 != nil || !u.May("info") {
			t.Errorf("admin: %v, %v, %v", u, err, err2)
		}
		if err := g.Logout(token); err != nil {
			t.Error(err)
		}
		if _, err := g.User(request("Authorization", "Bearer "+token)); !errors.Is(err, ErrUnknown) {
			t.Errorf("after the logout: %v", err)
		}
		<-time.After(time.Hour + time.Second)
		if _, err := g.User(request("Authorization", "Bearer "+second)); !errors.Is(err, ErrUnknown) {
			t.Errorf("after an hour: %v", err)
		}
		third, _, err := g.Login("root", "word")
		if err2 := g.Logout(third); err != nil || err2 != nil || len(g.revoked) != 1 {
			t.Errorf("%v, %v: %d tokens are remembered", err, err2, len(g.revoked))
		}
	})
}

// TestForgedTokens has tokens that this guard did not make.
func TestForgedTokens(t *testing.T) {
	g := tokens(t)
	later := jwt.NewNumericDate(time.Now().Add(time.Hour))
	sign := func(method jwt.SigningMethod, key any, c jwt.RegisteredClaims) string {
		out, err := jwt.NewWithClaims(method, c).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, token := range map[string]string{
		"unsigned":       sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, jwt.RegisteredClaims{Issuer: issuer, Subject: "ann", ExpiresAt: later}),
		"another key":    sign(jwt.SigningMethodHS256, []byte("secret"), jwt.RegisteredClaims{Issuer: issuer, Subject: "ann", ExpiresAt: later}),
		"another method": sign(jwt.SigningMethodHS512, []byte(key), jwt.RegisteredClaims{Issuer: issuer, Subject: "ann", ExpiresAt: later}),
		"for ever":       sign(jwt.SigningMethodHS256, []byte(key), jwt.RegisteredClaims{Issuer: issuer, Subject: "ann"}),
		"another issuer": sign(jwt.SigningMethodHS256, []byte(key), jwt.RegisteredClaims{Subject: "ann", ExpiresAt: later}),
		"removed user":   sign(jwt.SigningMethodHS256, []byte(key), jwt.RegisteredClaims{Issuer: issuer, Subject: "eve", ExpiresAt: later}),
		"nonsense":       "nonsense",
	} {
		if u, err := g.User(request("Authorization", "Bearer "+token)); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v, %v", name, u, err)
		}
	}
}

// TestLoginsAreLimited tries passwords faster than anybody types.
func TestLoginsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := tokens(t)
		for range loginBurst {
			if _, _, err := g.Login("ann", "wrong"); !errors.Is(err, ErrUnknown) {
				t.Fatal(err)
			}
		}
		if _, _, err := g.Login("ann", "pass"); !errors.Is(err, ErrTooMany) {
			t.Errorf("after %d attempts: %v", loginBurst, err)
		}
		<-time.After(time.Second)
		if _, _, err := g.Login("ann", "pass"); err != nil {
			t.Error(err)
		}
	})
}

func TestCertificate(t *testing.T) {
	g, err := New(Config{Certificates: true})
	if err != nil {
		t.Fatal(err)
	}
	r := request()
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: "ann"}}}}}
	if u, err := g.User(r); err != nil || u.Name != "certificate of ann" || !u.May("dump") {
		t.Errorf("got %v, %v", u, err)
	}
	r.TLS.VerifiedChains = nil
	if _, err := g.User(r); !errors.Is(err, ErrUnknown) {
		t.Errorf("without a verified certificate: %v", err)
	}
}

func TestConfig(t *testing.T) {
	good := User{"ann", hash(t, "pass"), []string{"dump"}}
	for name, tt := range map[string]struct {
		c    Config
		says string
	}{
		"no key":           {Config{Tokens: true, Users: []User{good}}, "sign-key has 0 bytes; expected at least 32"},
		"a known key":      {Config{Tokens: true, Users: []User{good}, SignKey: "secret"}, "sign-key has 6 bytes"},
		"no users":         {Config{Tokens: true, SignKey: key}, "users is required"},
		"no name":          {Config{Tokens: true, SignKey: key, Users: []User{{"", good.Password, nil}}}, "users[0].name is required"},
		"twice":            {Config{Tokens: true, SignKey: key, Users: []User{good, good}}, `users[1].name: "ann" is given twice`},
		"clear text":       {Config{Tokens: true, SignKey: key, Users: []User{{"ann", "topsecret", nil}}}, "users[0].password: expected the bcrypt hash"},
		"no such group":    {Config{Tokens: true, SignKey: key, Users: []User{{"ann", good.Password, []string{"dmp"}}}}, `users[0].permissions[0]: "dmp"; expected one of admin, dump`},
		"cost":             {Config{Tokens: true, SignKey: key, Users: []User{good}, HashCost: 99}, "password-hash-cost is 99; expected a number from 4 to 31"},
		"expiration":       {Config{Tokens: true, SignKey: key, Users: []User{good}, Expiration: -1}, "token-expiration is -1ns"},
		"no password":      {Config{Basic: []string{"ann:"}}, "client-basic-auth[0]: expected NAME:PASSWORD"},
		"no colon":         {Config{Basic: []string{"topsecret"}}, "client-basic-auth[0]: expected NAME:PASSWORD"},
		"basic user twice": {Config{Basic: []string{"ann:topsecret", "ann:b"}}, `client-basic-auth[1]: the name "ann" is given twice`},
	} {
		tt.c.Groups = []string{"dump"}
		_, err := New(tt.c)
		if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: got %v, want %s", name, err, tt.says)
		}
	}
}
