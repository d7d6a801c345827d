package top

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// Control sequences of terminals (ECMA-48, and the private modes of xterm). The other screen keeps
// the text that was on the terminal before.
const (
	enter   = "\x1b[?1049h\x1b[?25l" // other screen, no cursor
	leave   = "\x1b[?25h\x1b[?1049l"
	home    = "\x1b[H"
	endLine = "\x1b[K" // clears the rest of the line
	endText = "\x1b[J" // clears the lines below
)

// interrupt is the byte of Ctrl-C. In raw mode a terminal sends it instead of a signal.
const interrupt = 3

// A screen draws the counters on a terminal. Its goroutine owns it.
type screen struct {
	session  *session.Session
	interval time.Duration

	before, now *sample
	lost        string // why the newest sample is missing; empty: it is not
}

// run draws until a key or ctx ends it. It leaves the terminal as it was.
func (c *screen) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in, ok := c.session.In.(*os.File); ok && show.IsTerminal(in) {
		state, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return err
		}
		defer func() { _ = term.Restore(int(in.Fd()), state) }()
		// The goroutine ends with the process, or with its terminal.
		go awaitKey(in, cancel)
	}
	if _, err := io.WriteString(c.session.Out, enter); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(c.session.Out, leave) }()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	for {
		if err := c.draw(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
		case <-tick.C:
			c.next(ctx)
		}
	}
}

// awaitKey calls end when q or Ctrl-C is pressed.
func awaitKey(in io.Reader, end func()) {
	key := make([]byte, 1)
	for {
		if _, err := in.Read(key); err != nil {
			return
		}
		if key[0] == 'q' || key[0] == interrupt {
			end()
			return
		}
	}
}

// next reads the next sample. A lost agent is asked again after the interval.
func (c *screen) next(ctx context.Context) {
	s, err := read(ctx, c.session)
	if err != nil {
		c.lost = show.Remote(err.Error())
		return
	}
	c.before, c.now, c.lost = c.now, s, ""
}

// draw writes the whole screen at once, over the one before, so that it does not flicker.
func (c *screen) draw() error {
	columns, lines := show.Size(c.session.Out)
	title := show.Shorten("agentctl top   "+c.now.at.Format(time.TimeOnly)+"   q ends", columns) + "\n"
	if c.lost != "" {
		title += show.BrokenAt("no answer since then: "+c.lost, columns, 2) + "\n"
	}
	text := title + view(c.before, c.now, columns, max(lines-strings.Count(title, "\n"), 0))
	// The last line has no line feed, which would scroll the screen.
	text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", endLine+"\r\n")
	_, err := io.WriteString(c.session.Out, home+text+endLine+endText)
	return err
}
