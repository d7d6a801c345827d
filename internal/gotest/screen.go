package main

import (
	"fmt"
	"io"
	"os"
)

// A screen is where progress is printed: on a terminal one line that moves, elsewhere a line each time.
type screen struct {
	out      io.Writer
	terminal bool
	said     bool // the last line is about the progress, and moves
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		s.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

// toStart ends the moving line: what follows replaces it.
const toStart = "\r\033[K"

// say prints a line about the progress.
func (s *screen) say(line string) {
	if !s.terminal {
		fmt.Fprintln(s.out, line)
		return
	}
	const width = 79 // a line that wraps would stay
	fmt.Fprint(s.out, toStart, line[:min(len(line), width)])
	s.said = true
}

// print prints text that stays.
func (s *screen) print(text string) {
	if s.said {
		fmt.Fprint(s.out, toStart)
		s.said = false
	}
	fmt.Fprint(s.out, text)
}
