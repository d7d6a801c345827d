package conn

import (
	"errors"
	"fmt"
	"reflect"

	"go.fd.io/govpp/api"

	"github.com/keyplane/keyplane/scheduler"
)

var (
	// ErrLost means that a call has no answer, because there is no connection.
	ErrLost = errors.New("VPP is not connected")
	// ErrCut means that the connection ended while VPP was processing a call. It comes
	// with ErrLost.
	ErrCut = errors.New("VPP went away before it answered")
	// ErrHung means that the connection was closed because VPP was silent for too long.
	ErrHung = errors.New("VPP does not answer")
	// ErrProtocol means that the other side does not follow VPP's API.
	ErrProtocol = errors.New("not what VPP's API says")
)

// A Refusal is a reply whose return value is not zero. It unwraps to the
// api.VPPApiError: errors.Is(err, api.NO_SUCH_ENTRY).
type Refusal struct {
	Request api.Message
	Retval  int32
}

// Error has the name and number of the error (VPP src/vnet/api_errno.h), the message, and
// the request without its secrets.
func (e *Refusal) Error() string {
	asked := reflect.New(reflect.TypeOf(e.Request).Elem())
	asked.Elem().Set(reflect.ValueOf(e.Request).Elem())
	hideSecrets(asked.Elem())
	return fmt.Sprintf("%s: %v; asked was %+v", e.Request.GetMessageName(), e.Unwrap(), asked)
}

// hideSecrets empties the secret fields of a message and of its nested messages.
func hideSecrets(m reflect.Value) {
	for i := range m.NumField() {
		switch name := m.Type().Field(i).Name; {
		case name == "Secret" || name == "PrivateKey" || name == "CryptoKey" || name == "IntegrityKey" || name == "Salt":
			m.Field(i).SetZero()
		case m.Field(i).Kind() == reflect.Struct:
			hideSecrets(m.Field(i))
		}
	}
}

// Unwrap returns VPP's error, for errors.Is with the constants of package api.
func (e *Refusal) Unwrap() error { return api.VPPApiError(e.Retval) }

// Missing means that VPP does not have any variant of a message. A value that needs it is
// UNIMPLEMENTED.
type Missing struct {
	Message string
	Release string // VPP's version
}

// Error names the release, since another one may have the message.
func (e *Missing) Error() string {
	return fmt.Sprintf("VPP %s has no message %s that fits", e.Release, e.Message)
}

// Unwrap makes the value UNIMPLEMENTED, not FAILED: a retry on this VPP would be in vain.
func (e *Missing) Unwrap() error { return scheduler.ErrUnimplemented }
