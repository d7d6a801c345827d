// Package auth knows the users of the HTTP server: by a name and password in each
// request, by a token that they get for them, or by a client certificate.
//
//	guard, err := auth.New(auth.Config{Tokens: true, Users: users, SignKey: key, Groups: groups})
//	token, expires, err := guard.Login(name, password)
//	user, err := guard.User(request)
//	user.May("dump")
//
// There is no built-in user and no default key, except those of [Config.Older]: whoever reads this source knows them.
// A token carries only a name. Its permissions are those of the configuration, so a user
// that is no longer configured has none.
//
// Passwords of token users are bcrypt hashes. Comparing one takes long on purpose, so
// logins are limited in rate; an unknown name takes as long as a wrong password.
package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/time/rate"

	"github.com/keyplane/keyplane/internal/sender"
)

// Admin is the permission that contains all others.
const Admin = "admin"

// Config is the part of http.conf about users.
type Config struct {
	// Basic are users with all permissions, each as NAME:PASSWORD in clear text.
	Basic []string
	// Certificates reports that TLS has verified the certificate of each client. Such a
	// client has all permissions.
	Certificates bool
	// Tokens enables logins of Users.
	Tokens bool
	Users  []User
	// SignKey signs tokens. It has at least MinSignKey bytes, and no default.
	SignKey string
	// Expiration is the lifetime of a token. Defaults to 1 h.
	Expiration time.Duration
	// HashCost is the bcrypt cost of passwords. Defaults to 10; see bcrypt.DefaultCost.
	HashCost int
	// Groups are the names of permissions that users may have, besides Admin.
	Groups []string

	shortKey bool // SignKey may have any length
}

// Older returns the configuration with what was built into vpp-agent 3.5: the user admin with the password
// ligato123, and a key for tokens. Everybody knows both.
func (c Config) Older() Config {
	if !c.Tokens {
		return c
	}
	c.SignKey, c.shortKey = cmp.Or(c.SignKey, "secret"), true
	if !slices.ContainsFunc(c.Users, func(u User) bool { return u.Name == Admin }) {
		const hash = "$2a$10$DdyN3MHr95sj1G4puO4FOuEyQrlVe8DDUjyNb3K5IndulawSWVaUK"
		c.Users = append(slices.Clone(c.Users), User{Name: Admin, Password: hash, Permissions: []string{Admin}})
	}
	return c
}

// A User may log in for a token.
type User struct {
	Name     string `yaml:"name"`
	Password string `yaml:"password"` // its bcrypt hash
	// Names of Config.Groups, or Admin. A user without any may still log in, and read the
	// index.
	Permissions []string `yaml:"permissions"`
}

// Enabled reports whether the configuration has any users.
func (c Config) Enabled() bool { return len(c.Basic) > 0 || c.Tokens || c.Certificates }

var (
	// ErrUnknown reports a request without credentials, or with wrong or expired ones. It
	// does not tell which: names of users are no public knowledge.
	ErrUnknown = errors.New("name and password, or a token, are required")
	// ErrWrong is ErrUnknown for a name and a password that came with the request.
	ErrWrong = fmt.Errorf("%w: these are wrong", ErrUnknown)
	// ErrTooMany reports that too many logins were tried.
	ErrTooMany = errors.New("too many logins; try again later")
)

// MinSignKey is the minimum length of a key in bytes: the size of the signature, as RFC
// 7518 demands.
const MinSignKey = 32

// An Identity is a known user.
type Identity struct {
	Name string
	// Shared with the configuration, so it must not be changed.
	groups []string
}

// May reports whether the user has a permission.
func (i Identity) May(group string) bool {
	return slices.Contains(i.groups, group) || slices.Contains(i.groups, Admin)
}

// A Guard tells who sends a request. Its methods may be called from any goroutine.
type Guard struct {
	c     Config
	basic map[string][sha256.Size]byte // hashes of passwords by name
	// Users of tokens by name. Like basic, it does not change after New, so it needs no lock.
	users map[string]User
	dummy []byte // the hash that an unknown name is compared with
	// One limit for all clients: a limit for each address would not stop a guess from many.
	tries   *rate.Limiter
	guesses guesses

	mu      sync.Mutex           // guards revoked
	revoked map[string]time.Time // IDs of tokens that were logged out, with the end of their life
}

// Logins that are possible at once, and per second. One takes about 60 ms of CPU.
const (
	loginBurst = 5
	loginRate  = 2
)

// New returns a Guard. An error names the key, and never a password.
func New(c Config) (*Guard, error) {
	c.Expiration, c.HashCost = cmp.Or(c.Expiration, time.Hour), cmp.Or(c.HashCost, bcrypt.DefaultCost)
	g := &Guard{
		c: c, basic: map[string][sha256.Size]byte{}, users: map[string]User{},
		tries: rate.NewLimiter(loginRate, loginBurst), revoked: map[string]time.Time{},
	}
	err := errors.Join(g.addBasic(), g.checkTokens(), g.addUsers())
	if err != nil {
		return nil, err
	}
	if c.Tokens {
		// It costs as much as the most expensive hash of a user, or an unknown name would be
		// answered sooner.
		cost := c.HashCost
		for _, u := range c.Users {
			if n, err := bcrypt.Cost([]byte(u.Password)); err == nil {
				cost = max(cost, n)
			}
		}
		g.dummy, err = bcrypt.GenerateFromPassword([]byte("nobody has this password"), cost)
	}
	return g, err
}

// addBasic reads NAME:PASSWORD.
func (g *Guard) addBasic() (err error) {
	for i, pair := range g.c.Basic {
		name, password, ok := strings.Cut(pair, ":")
		_, twice := g.basic[name]
		switch {
		case !ok || name == "" || password == "":
			err = errors.Join(err, fmt.Errorf("client-basic-auth[%d]: expected NAME:PASSWORD", i))
		case twice:
			err = errors.Join(err, fmt.Errorf("client-basic-auth[%d]: the name %q is given twice", i, name))
		}
		g.basic[name] = sha256.Sum256([]byte(password))
	}
	return err
}

// checkTokens checks the settings of tokens.
func (g *Guard) checkTokens() (err error) {
	c := g.c
	if !c.Tokens {
		return nil
	}
	if len(c.SignKey) < MinSignKey && !c.shortKey {
		err = fmt.Errorf("sign-key has %d bytes; expected at least %d, such as from: openssl rand -base64 32", len(c.SignKey), MinSignKey)
	}
	if c.Expiration < 0 {
		err = errors.Join(err, fmt.Errorf("token-expiration is %v; expected a duration above zero", c.Expiration))
	}
	if c.HashCost < bcrypt.MinCost || c.HashCost > bcrypt.MaxCost {
		err = errors.Join(err, fmt.Errorf("password-hash-cost is %d; expected a number from %d to %d", c.HashCost, bcrypt.MinCost, bcrypt.MaxCost))
	}
	if len(c.Users) == 0 {
		err = errors.Join(err, errors.New("enable-token-auth: nobody could log in; users is required"))
	}
	return err
}

// addUsers reads the users of tokens.
func (g *Guard) addUsers() (err error) {
	for i, u := range g.c.Users {
		at := fmt.Sprintf("users[%d]", i)
		_, twice := g.users[u.Name]
		if u.Name == "" {
			err = errors.Join(err, fmt.Errorf("%s.name is required", at))
		} else if twice {
			err = errors.Join(err, fmt.Errorf("%s.name: %q is given twice", at, u.Name))
		}
		if _, wrong := bcrypt.Cost([]byte(u.Password)); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s.password: expected the bcrypt hash of a password, such as from: htpasswd -nBC 10 %s", at, cmp.Or(u.Name, "NAME")))
		}
		for j, p := range u.Permissions {
			if p != Admin && !slices.Contains(g.c.Groups, p) {
				err = errors.Join(err, fmt.Errorf("%s.permissions[%d]: %q; expected one of %s, %s", at, j, p, Admin, strings.Join(g.c.Groups, ", ")))
			}
		}
		g.users[u.Name] = u
	}
	return err
}

// User returns the sender of a request. The error is ErrUnknown, ErrWrong, or ErrTooMany after several of these from one
// address.
func (g *Guard) User(r *http.Request) (Identity, error) {
	if g.c.Certificates && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return Identity{sender.OfCertificate(r.TLS.VerifiedChains[0][0]), []string{Admin}}, nil
	}
	failed := ErrUnknown
	if name, password, ok := r.BasicAuth(); ok && len(g.basic) > 0 {
		failed = g.guesses.try(r.RemoteAddr, func() bool { return g.isBasic(name, password) })
		if failed == nil {
			return Identity{name, []string{Admin}}, nil
		}
	}
	if text := TokenOf(r); g.c.Tokens && text != "" {
		if user, err := g.tokenUser(text); err == nil {
			return user, nil
		}
	}
	return Identity{}, failed
}

// isBasic compares name and password in a time that tells nothing about the password.
func (g *Guard) isBasic(name, password string) bool {
	want, known := g.basic[name]
	got := sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && known
}

// checkPassword compares the password of a token user.
func (g *Guard) checkPassword(name, password string) (User, error) {
	if !g.tries.Allow() {
		return User{}, ErrTooMany
	}
	u, known := g.users[name]
	hash := []byte(u.Password)
	if !known {
		hash = g.dummy
	}
	if bcrypt.CompareHashAndPassword(hash, []byte(password)) != nil || !known {
		return User{}, ErrUnknown
	}
	return u, nil
}

// Challenge is the WWW-Authenticate header for a client without credentials. Browsers ask
// for a name and password only if that is of use.
func (g *Guard) Challenge() string {
	if len(g.basic) > 0 {
		return `Basic realm="keyplane", charset="UTF-8"`
	}
	return `Bearer realm="keyplane"`
}

// HasTokens reports whether users can log in.
func (g *Guard) HasTokens() bool { return g != nil && g.c.Tokens }

// contextKey is the key of the user in the context of a request.
type contextKey struct{}

// With returns a context that carries the user of a request.
func With(ctx context.Context, i Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, i)
}

// From returns the user in the context of a request, and whether there is one.
func From(ctx context.Context) (Identity, bool) {
	i, ok := ctx.Value(contextKey{}).(Identity)
	return i, ok
}
