package conn

import (
	"errors"
	"fmt"
	"reflect"

	"go.fd.io/govpp/api"

	"github.com/keyplane/keyplane/scheduler"
)

var (
	// ErrLost is why a call did not get its answer: there is no connection, or no longer.
	ErrLost = errors.New("VPP is not connected")
	// ErrCut is why a call did not get its answer when the connection ended while VPP was
	// at it; it comes with ErrLost.
	ErrCut = errors.New("VPP went away before it answered")
	// ErrHung is why a connection was given up: VPP has been silent for too long.
	ErrHung = errors.New("VPP does not answer")
	// ErrProtocol is what Dial and calls return when something answers that is not VPP's API.
	ErrProtocol = errors.New("not what VPP's API says")
)

// A Refusal is a reply whose return value is not zero. It unwraps to the
// api.VPPApiError: errors.Is(err, api.NO_SUCH_ENTRY).
type Refusal struct {
	Request api.Message
	Retval  int32
}

// Error has the name and number of the error (VPP src/vnet/api_errno.h), the
// message, and what was asked, without its secrets.
func (e *Refusal) Error() string {
	asked := reflect.New(reflect.TypeOf(e.Request).Elem())
	asked.Elem().Set(reflect.ValueOf(e.Request).Elem())
	hideSecrets(asked.Elem())
	return fmt.Sprintf("%s: %v; asked was %+v", e.Request.GetMessageName(), e.Unwrap(), asked)
}

// hideSecrets empties the fields of a message, and of those in it, that are secrets.
func hideSecrets(m reflect.Value) {
	for i := range m.NumField() {
		switch name := m.Type().Field(i).Name; {
		case name == "Secret" || name == "PrivateKey" || name == "CryptoKey" || name == "IntegrityKey":
			m.Field(i).SetZero()
		case m.Field(i).Kind() == reflect.Struct:
			hideSecrets(m.Field(i))
		}
	}
}

func (e *Refusal) Unwrap() error { return api.VPPApiError(e.Retval) }

// Missing says that this VPP does not know any variant of a message. A value that
// needs it is UNIMPLEMENTED.
type Missing struct {
	Message string
	Release string // what VPP calls its version
}

func (e *Missing) Error() string {
	return fmt.Sprintf("VPP %s has no message %s that fits", e.Release, e.Message)
}

func (e *Missing) Unwrap() error { return scheduler.ErrUnimplemented }
