package auth

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Cookie is the name of the cookie with a token. Clients of existing deployments send it.
const Cookie = "ligato-rest-auth"

// issuer marks tokens, so that another program's tokens with the same key are not valid.
const issuer = "keyplane"

// TokenOf returns the token of a request, from the header Authorization or the cookie, or
// "" if it has none.
func TokenOf(r *http.Request) string {
	if scheme, text, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(text)
	}
	cookie, err := r.Cookie(Cookie)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Login returns a new token. The error is ErrUnknown or ErrTooMany.
func (g *Guard) Login(name, password string) (token string, expires time.Time, err error) {
	u, err := g.checkPassword(name, password)
	if err != nil {
		return "", time.Time{}, err
	}
	now := time.Now()
	expires = now.Add(g.c.Expiration)
	token, err = jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Issuer: issuer, Subject: u.Name, ID: rand.Text(), IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(expires),
	}).SignedString([]byte(g.c.SignKey))
	return token, expires, err
}

// Logout ends the life of a token. An invalid token is ErrUnknown.
func (g *Guard) Logout(token string) error {
	claims, err := g.claims(token)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	for id, end := range g.revoked { // its size is bounded by the logins of one lifetime
		if end.Before(now) {
			delete(g.revoked, id)
		}
	}
	g.revoked[claims.ID] = claims.ExpiresAt.Time
	return nil
}

// tokenUser returns the user of a token.
func (g *Guard) tokenUser(token string) (Identity, error) {
	claims, err := g.claims(token)
	if err != nil {
		return Identity{}, err
	}
	u, known := g.users[claims.Subject]
	if !known {
		return Identity{}, ErrUnknown
	}
	return Identity{u.Name, u.Permissions}, nil
}

// claims verifies a token that has neither expired nor been logged out.
func (g *Guard) claims(token string) (*jwt.RegisteredClaims, error) {
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return []byte(g.c.SignKey), nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(), jwt.WithIssuer(issuer))
	if err != nil {
		return nil, errors.Join(ErrUnknown, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ended := g.revoked[claims.ID]; ended {
		return nil, ErrUnknown
	}
	return &claims, nil
}

// Lifetime returns the time until a token expires.
func (g *Guard) Lifetime(expires time.Time) time.Duration { return time.Until(expires) }
