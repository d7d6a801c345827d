package printable

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	// rpcCode is how an error of gRPC begins (google.golang.org/grpc/internal/status).
	rpcCode = regexp.MustCompile(`rpc error: code = [\w()]+ desc = `)
	// connectionError is how gRPC tells why it has no connection (google.golang.org/grpc/internal/transport).
	connectionError = regexp.MustCompile(`connection error: desc = "(?:[^"\\]|\\.)*"`)
	// ownWords are what gRPC says in it before the error of the system.
	ownWords = strings.NewReplacer("transport: ", "", "Error while dialing: ", "")
)

// WithoutRPC returns the text of an error without what gRPC adds for programs: its codes, and the quotes around
// the reason why there is no connection.
func WithoutRPC(text string) string {
	text = rpcCode.ReplaceAllString(text, "")
	return connectionError.ReplaceAllStringFunc(text, func(found string) string {
		reason, err := strconv.Unquote(found[strings.IndexByte(found, '"'):])
		if err != nil {
			return found
		}
		return ownWords.Replace(reason)
	})
}
