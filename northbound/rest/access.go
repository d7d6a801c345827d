package rest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/time/rate"

	"github.com/keyplane/keyplane/internal/reach"
	"github.com/keyplane/keyplane/internal/sender"
	"github.com/keyplane/keyplane/northbound/rest/internal/auth"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
)

// protected returns the endpoint, which first asks who sends the request, if the server
// has users. Without users everybody may read, and change what the configuration opens.
func (h *handler) protected(e endpoint.Endpoint) endpoint.Endpoint {
	e = h.told(e)
	if h.guard == nil {
		if h.readOnly && e.Changes() {
			e.Serve = func(http.ResponseWriter, *http.Request, endpoint.Query) error {
				return h.refused(e.Method + " " + e.Path)
			}
		}
		return e
	}
	serve := e.Serve
	e.Serve = func(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
		user, err := h.guard.User(r)
		if err == nil {
			r = r.WithContext(sender.Named(auth.With(r.Context(), user), user.Name))
		}
		switch {
		case errors.Is(err, auth.ErrWrong):
			h.Log.Warn("login refused", "from", r.RemoteAddr)
		case errors.Is(err, auth.ErrTooMany) && e.Group != endpoint.Open:
			w.Header().Set("Retry-After", "1")
			return reply.Status(http.StatusTooManyRequests, err)
		}
		switch {
		case e.Group == endpoint.Open:
		// The header makes a browser ask for a name and a password (RFC 7235).
		case err != nil:
			w.Header().Set("WWW-Authenticate", h.guard.Challenge())
			return reply.Status(http.StatusUnauthorized, fmt.Errorf("%w, which http.conf lists; %s", auth.ErrUnknown, h.bySocket()))
		case e.Group != endpoint.Any && !user.May(string(e.Group)):
			return forbidden(user, e.Group)
		}
		return serve(w, r, q)
	}
	return e
}

// told returns the endpoint, which logs each request that may change something, with who sends it.
func (h *handler) told(e endpoint.Endpoint) endpoint.Endpoint {
	if !e.Changes() {
		return e
	}
	serve := e.Serve
	e.Serve = func(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
		err := serve(w, r, q)
		h.Log.Info("a client has asked for a change", "by", sender.Of(r.Context()), "request", e.Method+" "+r.URL.Path, "err", err)
		return err
	}
	return e
}

// forbidden is the error of a user who lacks a permission.
func forbidden(user auth.Identity, g endpoint.Group) error {
	return reply.Status(http.StatusForbidden, fmt.Errorf("%s lacks the permission %s (users of http.conf)", user.Name, g))
}

// refused is the error of a request that a sender without credentials may not make over TCP.
func (h *handler) refused(what string) error {
	return reply.Status(http.StatusForbidden, fmt.Errorf("%s needs a password, a token or a certificate over TCP, and http.conf names no users (client-basic-auth, enable-token-auth, client-cert-files); %s", what, h.bySocket()))
}

// bySocket says who may do everything, and where.
func (h *handler) bySocket() string {
	return fmt.Sprintf("root and the group %s need none on the agent's socket (agentctl, or curl --unix-socket %s)", reach.Group, cmp.Or(h.Socket, "PATH"))
}

// trusted reports whether the sender of a request may see details: a known user, or
// anybody if the server has no users.
func (h *handler) trusted(r *http.Request) bool {
	_, known := auth.From(r.Context())
	return known || h.guard == nil && !h.public
}

// errSecrets is the answer to secrets=1 from somebody unknown.
var errSecrets = errors.New("secrets are shown only on the agent's socket, or to users of http.conf with the permission secrets")

// revealing returns the handler for one request. With secrets=1 it shows secrets, if the
// sender may see them. With secrets=0 it hides them, also where the server shows them to
// everybody: a client that prints for people cannot rely on the kind of its connection.
func (h *handler) revealing(r *http.Request, q endpoint.Query) (*handler, error) {
	shown, err := q.Boolean("secrets")
	if err != nil {
		return nil, reply.BadRequest(err)
	}
	if q.Get("secrets") == "" || shown == h.Secrets {
		return h, nil
	}
	if shown {
		if err := maySeeSecrets(r); err != nil {
			return nil, err
		}
	}
	// A copy for this request: the handler is shared by all.
	own := *h
	own.Secrets = shown
	return &own, nil
}

// maySeeSecrets refuses a sender who may not see secrets.
func maySeeSecrets(r *http.Request) error {
	user, known := auth.From(r.Context())
	if !known {
		return reply.Status(http.StatusForbidden, errSecrets)
	}
	if !user.May(string(endpoint.Secrets)) {
		return forbidden(user, endpoint.Secrets)
	}
	return nil
}

// limitRate refuses requests above the rate of the configuration, with status 429. Probes
// are not counted: a supervisor would restart an agent whose clients are too busy.
func (c *Config) limitRate(next http.Handler) http.Handler {
	if c.RateLimiter.Limit == 0 {
		return next
	}
	// One for all clients: an address can be shared or forged, and says little about a
	// client.
	limiter := rate.NewLimiter(rate.Limit(c.RateLimiter.Limit), c.RateLimiter.Burst)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/liveness" && r.URL.Path != "/readiness" && !limiter.Allow() {
			w.Header().Set("Retry-After", "1")
			reply.Fail(w, reply.Status(http.StatusTooManyRequests, fmt.Errorf("more than %g requests per second", c.RateLimiter.Limit)))
			return
		}
		next.ServeHTTP(w, r)
	})
}
