package conn

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

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
	// ErrLarge means that VPP has more values than this program collects. The connection
	// stays.
	ErrLarge = errors.New("VPP has too many values")
)

// A Refusal is a reply whose return value is not zero. It unwraps to the
// api.VPPApiError: errors.Is(err, api.NO_SUCH_ENTRY).
type Refusal struct {
	Request api.Message
	Retval  int32
}

// Error has the message, the fields of the request that identify its object, and the text and
// number of the error (VPP src/vnet/api_errno.h). A request can have hundreds of other fields,
// in which people would not find these, and some of them are secret.
func (e *Refusal) Error() string {
	text := e.Request.GetMessageName()
	if fields := keyFields(nil, reflect.ValueOf(e.Request).Elem()); len(fields) > 0 {
		text += "(" + strings.Join(fields, " ") + ")"
	}
	return fmt.Sprintf("%s: %v", text, e.Unwrap())
}

// mostKeyFields bounds the fields in the text of an error.
const mostKeyFields = 8

// keyFields appends the fields of a message, and of the structs in it, that identify an object, as
// VPP's API names them: sw_if_index=3. A field that is zero or "none" says nothing.
func keyFields(out []string, m reflect.Value) []string {
	for i := range m.NumField() {
		field, name := m.Field(i), wireName(m.Type().Field(i))
		_, printable := reflect.TypeAssert[fmt.Stringer](field)
		switch {
		case len(out) == mostKeyFields:
			return out
		case field.IsZero() || field.Kind() == reflect.Uint32 && uint32(field.Uint()) == ^uint32(0):
		case field.Kind() == reflect.Struct && !printable:
			out = keyFields(out, field)
		case field.Kind() == reflect.Bool || !identifies(name):
		case field.Kind() == reflect.String: // VPP has some texts in fields of a fixed size, with zeros at their end
			out = append(out, name+"="+strings.TrimRight(field.String(), "\x00"))
		case printable || field.Kind() != reflect.Slice && field.Kind() != reflect.Array:
			out = append(out, fmt.Sprintf("%s=%v", name, field))
		}
	}
	return out
}

// wireName returns the name of a field in VPP's API, from a tag such as `binapi:"u32,name=id"`.
func wireName(f reflect.StructField) string {
	_, name, _ := strings.Cut(f.Tag.Get("binapi"), "name=")
	name, _, _ = strings.Cut(name, ",")
	return name
}

// identifies reports whether a field with this name says which object a request is about. It lists
// what is shown, not what is hidden, because a secret of a new message must not appear.
func identifies(name string) bool {
	switch name {
	case "client_index", "decap_next_index", "stat_index", "stats_index":
		return false // they identify something else
	}
	switch name[strings.LastIndexByte(name, '_')+1:] {
	case "index", "id", "name", "tag", "prefix", "address", "addr", "ip", "mac", "src", "dst", "port", "vni", "spi", "teid", "bsid", "localsid", "instance", "filename":
		return true
	}
	return false
}

// Unwrap returns VPP's error, for errors.Is with the constants of package api.
func (e *Refusal) Unwrap() error { return api.VPPApiError(e.Retval) }

// Missing means that VPP does not have any variant of a message. A value that needs it is
// UNIMPLEMENTED.
type Missing struct {
	Message string
	Release string // VPP's version
	Plugin  string // the file of the plugin that brings the message and is not loaded; empty: none, the release lacks it
}

// Error names the release, since another one may have the message.
func (e *Missing) Error() string {
	text := fmt.Sprintf("VPP %s has no message %s that fits", e.Release, e.Message)
	if e.Plugin != "" {
		text += ", as it has not loaded " + e.Plugin
	}
	return text
}

// Unimplemented returns the error of a value that this VPP cannot have, for another reason than a missing
// message: it is UNIMPLEMENTED.
func Unimplemented(format string, args ...any) error {
	return unimplemented(fmt.Sprintf(format, args...))
}

// unimplemented is an error of Unimplemented.
type unimplemented string

// Error implements error.
func (e unimplemented) Error() string { return string(e) }

// Unwrap has the scheduler try nothing again.
func (e unimplemented) Unwrap() error { return scheduler.ErrUnimplemented }

// Unreadable means that VPP may have items that the agent cannot read: it has the message for that with
// another definition. Their kind stays unknown, so that nothing is made a second time.
type Unreadable struct {
	Message string
	Release string // VPP's version
}

// Error names the release, since another one may have the definition.
func (e *Unreadable) Error() string {
	return fmt.Sprintf("VPP %s has the message %s with another definition than those that the agent knows", e.Release, e.Message)
}

// Unwrap makes the value UNIMPLEMENTED, not FAILED: a retry on this VPP would be in vain.
func (e *Missing) Unwrap() error { return scheduler.ErrUnimplemented }
