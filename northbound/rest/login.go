package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/keyplane/keyplane/northbound/rest/internal/auth"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// loginPage is the form that GET /login shows.
const loginPage = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>agent: login</title></head>
<body>
<form action="/authenticate" method="post">
<label>Name <input name="username" autocomplete="username" required></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Log in</button>
</form>
</body>
</html>
`

// maxCredentials is the maximum size of a login in bytes.
const maxCredentials = 4 << 10

// errNoTokens is the answer of a server without token users.
var errNoTokens = errors.New("this server has no logins: enable-token-auth of http.conf enables them")

// logins returns the endpoints of tokens, at the top and below /auth, where existing
// deployments have them.
func (h *handler) logins() (out []endpoint.Endpoint) {
	for _, below := range []string{"", "/auth"} {
		out = append(out,
			endpoint.Get(below+"/login", endpoint.Open, "", "form for a name and a password", h.loginForm).Writes("text/html"),
			endpoint.Get(below+"/authenticate", endpoint.Open, "", "a token for a name and a password", h.authenticate).By(http.MethodPost).Takes(reply.JSONMedia).Answers("").Writes("text/plain"),
			endpoint.Get(below+"/logout", endpoint.Any, "", "end of the token's life", h.logout).By(http.MethodPost).Answers(wire.Nothing{}),
		)
	}
	return out
}

// loginForm answers the form.
func (h *handler) loginForm(w http.ResponseWriter, _ *http.Request, _ endpoint.Query) error {
	if !h.guard.HasTokens() {
		return reply.NotFound(errNoTokens)
	}
	reply.Page(w, "text/html; charset=UTF-8")
	_, _ = io.WriteString(w, loginPage)
	return nil
}

// authenticate answers a token as text, and sets it as a cookie. The body is JSON or the
// form of the login page.
func (h *handler) authenticate(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	if !h.guard.HasTokens() {
		return reply.NotFound(errNoTokens)
	}
	c, err := credentialsIn(w, r)
	if err != nil {
		return reply.BadRequest(err)
	}
	token, expires, err := h.guard.Login(c.Username, c.Password)
	switch {
	case errors.Is(err, auth.ErrTooMany):
		w.Header().Set("Retry-After", "1")
		return reply.Status(http.StatusTooManyRequests, err)
	case errors.Is(err, auth.ErrUnknown):
		h.Log.Warn("login refused", "from", r.RemoteAddr)
		return reply.Status(http.StatusUnauthorized, errors.New("unknown name or wrong password"))
	case err != nil:
		return err
	}
	reply.Unstored(w)
	http.SetCookie(w, cookie(r, token, int(h.guard.Lifetime(expires).Seconds())))
	reply.Header(w, reply.TextType, http.StatusOK)
	_, _ = io.WriteString(w, token+"\n")
	return nil
}

// logout ends the life of the request's token.
func (h *handler) logout(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	if !h.guard.HasTokens() {
		return reply.NotFound(errNoTokens)
	}
	if err := h.guard.Logout(auth.TokenOf(r)); err != nil {
		return reply.Status(http.StatusUnauthorized, auth.ErrUnknown)
	}
	http.SetCookie(w, cookie(r, "", -1))
	return reply.JSON(w, wire.Nothing{})
}

// cookie returns the cookie of a token. Scripts cannot read it, pages of other sites
// cannot use it, and it is never sent in clear text if it was received over TLS.
func cookie(r *http.Request, token string, seconds int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure depends on the connection: the loopback has no TLS
		Name: auth.Cookie, Value: token, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	}
}

// credentials is the body of a login.
type credentials struct {
	// Both are required. They are never logged, not even in an error.
	Username string `json:"username"`
	Password string `json:"password"`
}

// credentialsIn reads the body of a login. curl sends JSON as a form unless it is told otherwise, and a
// form does not begin with a brace: its names do not.
func credentialsIn(w http.ResponseWriter, r *http.Request) (c credentials, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCredentials))
	if err != nil {
		return c, fmt.Errorf("login: %w", err)
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "application/x-www-form-urlencoded" && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return c, fmt.Errorf("login: %w", err)
		}
		c = credentials{form.Get("username"), form.Get("password")}
	} else if err := json.Unmarshal(body, &c); err != nil {
		return c, fmt.Errorf(`login: expected {"username": ..., "password": ...}: %w`, err)
	}
	if c.Username == "" || c.Password == "" {
		return c, errors.New("login: username and password are required")
	}
	return c, nil
}
