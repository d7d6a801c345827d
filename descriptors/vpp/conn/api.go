package conn

import (
	"context"

	"go.fd.io/govpp/api"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// An API is what descriptors call VPP by. *Manager and *Conn are one.
type API interface {
	// Call asks and waits for the reply; see Conn.Call.
	Call(ctx context.Context, request, reply api.Message) error
	// Details asks for any number of details; Dump collects them.
	Details(ctx context.Context, request, detail api.Message, take func(message []byte) error) error
	// Has tells whether VPP has all these messages.
	Has(messages ...api.Message) bool
	// First returns the first message that VPP has, of variants of which the newest
	// comes first. Without any it is a *Missing that names the newest.
	First(variants ...api.Message) (api.Message, error)
}

// A message is a pointer to a message of type T.
type message[T any] interface {
	*T
	api.Message
}

// Dump returns the details that answer a request: conn.Dump[ip.IPRouteDetails](ctx, a, &ip.IPRouteDump{}).
func Dump[T any, P message[T]](ctx context.Context, a API, request api.Message) ([]T, error) {
	var out []T
	err := a.Details(ctx, request, P(new(T)), func(m []byte) error {
		var one T
		if err := vppwire.Decode(m, P(&one)); err != nil {
			return err
		}
		out = append(out, one)
		return nil
	})
	return out, err
}
