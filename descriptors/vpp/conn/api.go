package conn

import (
	"context"
	"fmt"
	"reflect"

	"go.fd.io/govpp/api"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// An API sends requests to VPP. *Manager and *Conn implement it.
type API interface {
	// Call sends a request and waits for the reply; see Conn.Call.
	Call(ctx context.Context, request, reply api.Message) error
	// Batch sends all requests at once. VPP carries them out in order, and goes on after
	// one that it refuses. The error is the first of the steps' errors, or the reason that
	// not all were answered.
	Batch(ctx context.Context, steps ...*Step) error
	// Details sends a request with any number of answers; Dump collects them.
	Details(ctx context.Context, request, detail api.Message, take Take) error
	// Has tells whether VPP has all these messages.
	Has(messages ...api.Message) bool
	// First returns the first of several variants that VPP has; the newest comes first. If
	// VPP has none, the error is a *Missing that names the newest.
	First(variants ...api.Message) (api.Message, error)
}

// A Take is called with each answer to a request that has any number of them. The decoder is that
// of the connection, which knows the types of all earlier answers: most dumps have one answer, and
// to examine its type takes ten times as long as to decode it.
type Take func(d *vppwire.Decoder, message []byte) error

// A Step is one request of a batch.
type Step struct {
	Request api.Message
	Reply   api.Message // filled in
	// Detail and Take replace Reply for a request with any number of answers: a message of
	// their type, and the function that is called with each. A later step's reply marks
	// their end. It must come before details of the same type begin again. With all three,
	// the reply ends the details: VPP answers a request that is named *_get in this way.
	Detail api.Message
	Take   Take
	Err    error // the result
}

// Ask returns a step with one reply.
func Ask(request, reply api.Message) *Step { return &Step{Request: request, Reply: reply} }

// List returns a step with any number of answers, which are appended to into.
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

// A Translator is an API that changes the results of Dump.
type Translator interface {
	Translate(detail api.Message)
}

// mostHeld is about the memory, in bytes, that the collected details of one answer may take: some
// hundred thousand interfaces, or a million neighbours.
const mostHeld = 64 << 20

// collect decodes details into a list. More than mostHeld are an error of the call, and the
// connection stays: the others of its users must not suffer from one large table.
func collect[T any, P message[T]](into *[]T) Take {
	size, held := int(reflect.TypeFor[T]().Size()), 0
	return func(d *vppwire.Decoder, m []byte) error {
		var one T
		if held += size + len(m); held > mostHeld {
			*into = nil
			return fmt.Errorf("%w: the maximum of %s is %d MiB", ErrLarge, P(&one).GetMessageName(), mostHeld>>20)
		}
		if err := d.Decode(m, P(&one)); err != nil {
			return err
		}
		*into = append(*into, one)
		return nil
	}
}
