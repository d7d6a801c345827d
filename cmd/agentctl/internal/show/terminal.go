package show

import (
	"io"
	"os"

	"golang.org/x/term"
)

// The size of a terminal that does not tell its own: that of a VT100, for which output is made.
const usualWidth, usualHeight = 80, 24

// IsTerminal reports whether w is a terminal, where control characters would be interpreted.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Draws reports whether w is a terminal that obeys control sequences: one that moves its cursor and
// has colours. One with TERM=dumb, such as the shell of an editor, prints them. env looks up
// environment variables.
func Draws(w any, env func(string) (string, bool)) bool {
	kind, _ := env("TERM")
	return IsTerminal(w) && kind != "dumb"
}

// Size returns the size of a terminal in columns and lines. It returns 80 and 24 for everything
// else, and for a terminal that does not tell it, such as a serial line.
func Size(w io.Writer) (columns, lines int) {
	f, ok := w.(*os.File)
	if !ok {
		return usualWidth, usualHeight
	}
	columns, lines, err := term.GetSize(int(f.Fd()))
	if err != nil || columns == 0 || lines == 0 {
		return usualWidth, usualHeight
	}
	return columns, lines
}
