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
	// Batch sends all requests at once. VPP does one after the other, also after one that it
	// refuses. The error is the first of theirs, or why not all were answered.
	Batch(ctx context.Context, steps ...*Step) error
	// Details asks for any number of details; Dump collects them.
	Details(ctx context.Context, request, detail api.Message, take func(message []byte) error) error
	// Has tells whether VPP has all these messages.
	Has(messages ...api.Message) bool
	// First returns the first message that VPP has, of variants of which the newest
	// comes first. Without any it is a *Missing that names the newest.
	First(variants ...api.Message) (api.Message, error)
}

// A Step is one of some requests that are sent together.
type Step struct {
	Request api.Message
	Reply   api.Message // is filled in
	// Instead of Reply, of a request that any number of details answer: a message of their
	// kind, and what is called with each. They end with the reply to a later step, which has to be
	// there before details of the same kind come again.
	Detail api.Message
	Take   func(message []byte) error
	Err    error // how it ended
}

// Ask is a step of a request and its reply.
func Ask(request, reply api.Message) *Step { return &Step{Request: request, Reply: reply} }

// List is a step of a request that details answer, which are added to those of into.
func List[T any, P message[T]](request api.Message, into *[]T) *Step {
	return &Step{Request: request, Detail: P(new(T)), Take: collect[T, P](into)}
}

// A message is a pointer to a message of type T.
type message[T any] interface {
	*T
	api.Message
}

// Dump returns the details that answer a request: conn.Dump[ip.IPRouteDetails](ctx, a, &ip.IPRouteDump{}).
func Dump[T any, P message[T]](ctx context.Context, a API, request api.Message) ([]T, error) {
	var out []T
	err := a.Details(ctx, request, P(new(T)), collect[T, P](&out))
	if t, ok := a.(Translator); ok {
		for i := range out {
			t.Translate(P(&out[i]))
		}
	}
	return out, err
}

// A Translator is an API that changes what Dump returns.
type Translator interface {
	Translate(detail api.Message)
}

// collect decodes details into a list.
func collect[T any, P message[T]](into *[]T) func([]byte) error {
	var decoder vppwire.Decoder
	return func(m []byte) error {
		var one T
		if err := decoder.Decode(m, P(&one)); err != nil {
			return err
		}
		*into = append(*into, one)
		return nil
	}
}
