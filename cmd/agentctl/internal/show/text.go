package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/keyplane/keyplane/internal/printable"
)

// Line returns text from outside on one line, without control characters.
func Line(s string) string { return printable.Line(s) }

// Remote returns text of an error from outside on one line, because its line feeds may come
// from a value.
func Remote(text string) string { return Line(strings.ReplaceAll(text, "\n", "; ")) }

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
