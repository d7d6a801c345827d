package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/printable"
)

// Line returns text from outside on one line, without control characters.
func Line(s string) string { return printable.Line(s) }

// Remote returns text of an error from outside on one line, because its line feeds may come
// from a value, and without what only programs understand.
func Remote(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case strings.HasSuffix(b.String(), ":"): // a list begins
			b.WriteByte(' ')
		case b.Len() > 0:
			b.WriteString("; ")
		}
		b.WriteString(line)
	}
	return Line(Plain(b.String()))
}

// Plain returns the text of an error without the forms that the interfaces of the agent and of stores have for
// programs: the codes of gRPC, the list of a failed transaction, the name of a type, the end of a context, and the page of a web server that
// lacks a path.
func Plain(text string) string {
	text = printable.WithoutRPC(text)
	text = failedKeys.ReplaceAllString(text, "these failed: $1")
	text = strings.ReplaceAll(text, "VPPApiError: ", "VPP says: ")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "interrupted: context canceled", "interrupted"), "context canceled", "interrupted")
	return strings.ReplaceAll(text, "404 page not found", "there is nothing at this path")
}

// failedKeys is the text of a transaction with failed values; see scheduler.TxnError.
var failedKeys = regexp.MustCompile(`KeyErrors: \[(.*)\]`)

// JSONError returns the text of an error of protojson. Its errors have a space or a no-break space at
// random, and the name of the library first.
func JSONError(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
}

// Count returns a number with its noun: "1 value", "2 values".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Compact removes insignificant white space from JSON. Other text is returned unchanged.
func Compact(data []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return string(data)
	}
	return b.String()
}

// Short returns a duration for people: the largest unit, or the two largest units if the
// first is small.
func Short(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0: // the clock was set back
		return "-" + Short(-d)
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Truncate(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 10*time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/day)
	}
}
