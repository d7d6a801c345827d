// Package browser runs a headless Chromium for tests of pages. It is test code, apart from package
// testkit because few tests need its libraries.
//
//	page := browser.Open(t, "http://127.0.0.1:9191/ui", browser.Desk())
//	page.Until(`document.querySelectorAll(".row").length > 0`)
//	page.Press("j", browser.Enter)
//
// A test waits for conditions in the page, never for times. It fails at its end if the page has
// thrown an exception, has logged an error (such as a violation of its
// Content-Security-Policy), or has sent a request to another host.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/keyplane/keyplane/internal/testkit"
)

// Keys for Press.
const (
	Enter    = kb.Enter
	Escape   = kb.Escape
	Tab      = kb.Tab
	Up       = kb.ArrowUp
	Down     = kb.ArrowDown
	PageUp   = kb.PageUp
	PageDown = kb.PageDown
	End      = kb.End
	Home     = kb.Home
)

// A Size is that of the window, in CSS pixels.
type Size struct{ Width, Height int64 }

// Desk is the size of a usual screen.
func Desk() Size { return Size{1440, 900} }

// Narrow is the size of half a screen.
func Narrow() Size { return Size{760, 900} }

// A Page is one tab. Its methods end the test if the page does not do as they say in time.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	faults []string
	allow  []string // texts of faults that the test expects
}

// Open starts a browser with one page. Both end with the test. Without a Chromium the test is
// skipped; under CI it fails.
func Open(t testing.TB, address string, size Size) *Page {
	t.Helper()
	program, err := find()
	testkit.Need(t, "chromium (Debian package chromium)", err == nil)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(filepath.Join(t.TempDir(), "browser")),
		chromedp.NoSandbox, // it refuses to run as root otherwise
		chromedp.DisableGPU,
	)
	base, cancel := context.WithTimeout(context.Background(), 2*testkit.Patience)
	t.Cleanup(cancel)
	browser, stop := chromedp.NewExecAllocator(base, options...)
	t.Cleanup(stop)
	own, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &Page{t: t}
	ctx, end := chromedp.NewContext(browser, chromedp.WithListener(func(event any) { p.note(event, own.Host) }))
	p.ctx = ctx
	t.Cleanup(end)
	t.Cleanup(p.report)
	p.do("opening "+address, chromedp.EmulateViewport(size.Width, size.Height), chromedp.Navigate(address))
	return p
}

// find returns the path of a Chromium. CHROMIUM names another one.
func find() (string, error) {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// note records what must not happen.
func (p *Page) note(event any, host string) {
	fault := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Text
		if o := e.ExceptionDetails.Exception; o != nil {
			fault += " " + o.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			fault = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			fault = fmt.Sprintf("console: %v", e.Args)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && strings.HasPrefix(u.Scheme, "http") && u.Host != host {
			fault = "request to another host: " + e.Request.URL
		}
	}
	if fault != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = append(p.faults, fault)
	}
}

// Allow permits faults with a text: a test that asks for a refusal gets an error in the log.
func (p *Page) Allow(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allow = append(p.allow, text)
}

// report fails the test for each fault.
func (p *Page) report() {
	p.mu.Lock()
	defer p.mu.Unlock()
next:
	for _, f := range p.faults {
		for _, text := range p.allow {
			if strings.Contains(f, text) {
				continue next
			}
		}
		p.t.Error(f)
	}
}

// do runs actions, and ends the test if one fails.
func (p *Page) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// Until waits until an expression of JavaScript is true. The message of a failure has the text of
// the page.
func (p *Page) Until(expression string) {
	p.t.Helper()
	_, err := chromedp.Run(p.ctx, chromedp.Poll[bool]("Boolean("+expression+")", chromedp.WithPollingTimeout(testkit.Patience)))
	if err != nil {
		p.t.Fatalf("%s: %v; the page says\n%s", expression, err, Get[string](p, `document.body.innerText.slice(0, 4000)`))
	}
}

// Get returns the value of an expression of JavaScript.
func Get[T any](p *Page, expression string) T {
	p.t.Helper()
	out, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// Press presses keys, one after the other. Each is one of the keys above, or a text.
func (p *Page) Press(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		p.do("pressing "+k, chromedp.KeyEvent(k))
	}
}

// Type inserts a text into the element that has the focus, as if it were pasted.
func (p *Page) Type(text string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		p.t.Fatalf("typing: %v", err)
	}
}

// Click clicks the first element of a CSS selector, once it is there. The event goes to the
// element itself: a place on the screen may have moved when the event arrives.
func (p *Page) Click(selector string) {
	p.t.Helper()
	element := fmt.Sprintf("document.querySelector(%q)", selector)
	p.Until(element)
	Get[bool](p, element+`.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, view: window }))`)
}

// Prefer sets the colour scheme of the system: dark or light.
func (p *Page) Prefer(scheme string) {
	p.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media); err != nil {
		p.t.Fatalf("preferring %s: %v", scheme, err)
	}
}

// Resize sets the size of the window.
func (p *Page) Resize(size Size) {
	p.t.Helper()
	p.do("resizing", chromedp.EmulateViewport(size.Width, size.Height))
}

// Go leads to another address of the same page: "#values".
func (p *Page) Go(hash string) {
	p.t.Helper()
	text, err := json.Marshal(hash)
	if err != nil {
		p.t.Fatal(err)
	}
	Get[string](p, "location.hash = "+string(text))
}

// Save writes a picture of the window into a file, in PNG.
func (p *Page) Save(path string) {
	p.t.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatalf("a picture: %v", err)
	}
	if err := os.WriteFile(path, picture, 0o600); err != nil {
		p.t.Fatal(err)
	}
}
