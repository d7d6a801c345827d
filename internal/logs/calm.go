package logs

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of the warnings and errors of one place of the program. Others decide how often some places log: a client without a
// password, or a store that changes a bad value, could otherwise fill the disk.
const (
	calmBurst = 2000 // lines at once
	calmRate  = 5    // lines per second after these
	// longestText bounds each text of a line in bytes. The longest key has as many.
	longestText = 4 << 10
)

// calm says which lines are written. Its methods may be called from any goroutine.
type calm struct {
	mu    sync.Mutex // guards sites
	sites map[site]*flow
}

// A site is a place that logs. A program has a finite number of them.
type site struct {
	logger string
	level  slog.Level
	pc     uintptr // the program counter; 0 for a logger of package log
}

// A flow is what comes from a site.
type flow struct {
	limit   *rate.Limiter
	told    bool // that lines are left out, since the site was calm
	leftOut int  // lines since the last one that was written
}

// A verdict says what becomes of one line.
type verdict struct {
	write   bool
	tell    bool // this is the first line that is left out
	leftOut int  // lines of the site before this one that were left out
}

// judge counts a line of a site.
func (c *calm) judge(from site, now time.Time) verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.sites[from]
	if f == nil {
		f = &flow{limit: rate.NewLimiter(calmRate, calmBurst)}
		c.sites[from] = f
	}
	if f.limit.TokensAt(now) > calmBurst/2 {
		f.told = false
	}
	if !f.limit.AllowN(now, 1) {
		tell := !f.told
		f.told = true
		f.leftOut++
		return verdict{tell: tell}
	}
	out := verdict{write: true, leftOut: f.leftOut}
	f.leftOut = 0
	return out
}

// attribute leaves out an error that there is not, because err=<nil> looks like a mistake to people, and shortens texts.
func attribute(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case nil:
		if a.Key == "err" {
			return slog.Attr{}
		}
	case string:
		a.Value = slog.StringValue(short(v))
	case error:
		if text := v.Error(); len(text) > longestText {
			a.Value = slog.StringValue(short(text))
		}
	}
	return a
}

// short returns a text of bounded length.
func short(text string) string {
	if len(text) <= longestText {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(text[:longestText], ""), len(text))
}
