package ui_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/testkit/browser"
)

var pictures = flag.String("ui.pictures", "", "`FOLDER` that gets the pictures of the documentation")

// open opens the page of a world and waits until it is complete.
func (w *world) open(hash string) *browser.Page {
	w.t.Helper()
	p := browser.Open(w.t, w.server.URL+"/ui"+hash, browser.Desk())
	p.Allow("/readiness")      // its status is 500 while something is missing
	p.Allow("/scheduler/plan") // this server plans for no source
	p.Until(`document.querySelector(".line.live") && document.querySelector("main")`)
	return p
}

// says waits until an element has a text.
func says(p *browser.Page, selector, text string) {
	p.Until(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))`, selector, text))
}

// silent waits until no such element has a text.
func silent(p *browser.Page, selector, text string) {
	p.Until(fmt.Sprintf(`![...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))`, selector, text))
}

// TestAProblemIsExplained follows a route that waits: from the list to its reason, from there to
// the missing value, and until it is configured.
func TestAProblemIsExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.open("")
	says(p, ".view", "Every declared value is configured.")
	w.commit("a route", route("10.9.0.0/16", "lan0"))
	says(p, ".row", "10.9.0.0/16/lan0")
	says(p, ".row", "interface-is-up: state/lan0/UP, which nobody declares")
	says(p, ".counts", "PENDING 1")
	p.Until(`document.title.startsWith("edge-7")`)

	p.Click(".row")
	says(p, "#detail h2", "10.9.0.0/16/lan0")
	says(p, "#detail .why", "which nobody declares")
	says(p, "#detail .fields", "10.1.0.2")
	says(p, "#detail table", "filedb")
	p.Click("#detail .graph a")
	says(p, "#detail h2", "state/lan0/UP")
	says(p, "#detail .facts", "NONEXISTENT")
	p.Click("#detail .graph a")
	says(p, "#detail h2", "10.9.0.0/16/lan0")

	w.commit("its interface", dummy("lan0", 1400))
	says(p, "#detail .facts", "CONFIGURED")
	says(p, ".view", "Every declared value is configured.")
	w.commit("a larger one", dummy("lan0", 1500))
	p.Go("#values?key=" + interfacePrefix + "lan0")
	says(p, "#detail .history", "~ mtu: 1400 -> 1500")
	says(p, "#detail .graph", "10.9.0.0/16/lan0")
}

// TestReasonsAreWhole shows problems with reasons of any length, the worst first. No reason is cut, also in a narrow
// window, beside a detail, and in a list that was scrolled.
func TestReasonsAreWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault = strings.Repeat("a long reason of many words that nobody may cut; ", 12) + "and its end"
	var all []proto.Message
	for i := range 120 {
		all = append(all, route(fmt.Sprintf("10.%d.0.0/16", i), "lan9"))
	}
	w.breaks(interfacePrefix+"lan7", true)
	w.commit("many", append(all, dummy("lan7", 1400))...)
	p := w.open("#problems")
	says(p, ".row:first-child .key", "lan7") // FAILED or RETRYING, and not the first key
	const whole = `(() => {
		const box = document.querySelector(".rows").getBoundingClientRect();
		const rows = [...document.querySelectorAll(".row")].filter((r) => r.querySelector(".reason")).sort((a, b) => Number(a.dataset.row) - Number(b.dataset.row));
		if (rows.length === 0) return false;
		for (const [i, r] of rows.entries()) {
			const e = r.querySelector(".reason"), at = r.getBoundingClientRect();
			if (e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight + 1 || e.getBoundingClientRect().bottom > at.bottom + 1) return false;
			if (i > 0 && Math.abs(rows[i - 1].getBoundingClientRect().bottom - at.top) > 1) return false;
		}
		return rows.some((r) => r.getBoundingClientRect().top < box.bottom);
	})()`
	p.Until(whole)
	says(p, ".row:first-child .reason", "and its end")
	browser.Get[bool](p, `(document.querySelector(".rows").focus(), true)`)
	p.Press(browser.End)
	says(p, ".row.cursor .key", "10.99.0.0/16/lan9")
	p.Until(whole)
	p.Press(browser.Home)
	p.Until(whole)
	p.Click(".row")
	says(p, "#detail .error", "and its end")
	p.Until(whole)
	p.Go("#problems")
	p.Resize(browser.Narrow())
	p.Until(whole)
}

// TestTheAgentIsGone stops the agent while the page is open. Large letters say so.
func TestTheAgentIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("", dummy("lan0", 1400))
	p := w.open("#values")
	says(p, ".row", "lan0")
	silent(p, "body", "The agent is gone")
	p.Allow("net::ERR")
	w.server.CloseClientConnections()
	w.server.Close()
	says(p, ".gone[role=alert]", "The agent is gone. It has not answered since")
	p.Until(`parseFloat(getComputedStyle(document.querySelector(".gone")).fontSize) >= 20`)
	says(p, ".row", "lan0") // as it was then
}

// TestTransactionsAndPlans shows an executed transaction that failed, and the plan of a text.
func TestTransactionsAndPlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("the first", dummy("lan0", 1400))
	w.breaks(interfacePrefix+"lan1", true)
	w.commit("one that fails", dummy("lan0", 1450), dummy("lan1", 0), dummy("lan2", 10000))
	p := w.open("#transactions")
	says(p, ".row", "one that fails")
	p.Click(".row")
	says(p, "#detail .operations .bad", "no buffer space")
	says(p, "#detail .operations", "~ mtu: 1400 -> 1450")
	says(p, "#detail .times", "Took")
	p.Click("#detail .tabs button:nth-child(2)")
	says(p, "#detail .operations", "lan1")
	silent(p, "#detail .operations", "no buffer")
	w.commit("another one", dummy("lan0", 1400))
	says(p, ".row", "another one")

	p.Press("6")
	p.Until(`document.activeElement.id === "plan-text"`)
	p.Type("linuxConfig:\n  interfaces:\n  - {name: lan0, type: DUMMY, enabled: true, mtu: 1500, ip_addresses: [10.1.0.1/24, 10.2.0.1/24]}\n  - {name: lan3, type: DUMY}\n")
	p.Click(".edit .main")
	says(p, ".outcome .changes", "~ mtu: 1400 -> 1500")
	says(p, ".outcome .changes", "+ ipAddresses: 10.2.0.1/24")
	says(p, ".outcome .bad", "DUMY")
	if st, _ := w.sched.Status(interfacePrefix + "lan0"); strings.Contains(fmt.Sprint(st.Desired), "1500") {
		t.Error("the plan was executed")
	}
}

// TestSourcesAndDrift shows sources, and values that differ from the configured ones.
func TestSourcesAndDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("", dummy("lan0", 1400), dummy("lan1", 1400))
	w.set(interfacePrefix+"lan0", dummy("lan0", 1300))
	p := w.open("#sources")
	says(p, "td", "lan.yaml:3: no mapping")
	says(p, "td", "connection refused")
	w.sources.set(54321)
	says(p, "td", "54\u202f321")
	p.Press("5")
	p.Click(".bar .main")
	says(p, ".operations", "~ mtu: 1400 -> 1300")
	silent(p, ".operations", "lan1")
	silent(p, ".operations", "FAILED")

	// The agent knows of this difference: it could not repair it.
	w.breaks(interfacePrefix+"lan1", true)
	w.commit("one that fails", dummy("lan1", 1450))
	p.Click(".bar .main")
	says(p, ".operations li:nth-child(2) .state", "FAILED")
	says(p, ".operations li:nth-child(2)", "~ mtu: 1450 -> 1400")
	silent(p, ".operations li:nth-child(1)", "FAILED")
}

// The header names a connection that is lost, unless it was never there and nothing needs it.
func TestConnectionsThatNothingNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.open("#sources")
	says(p, "td", "LOST")
	silent(p, "header .lost", "not READY")
	w.declare(farPrefix + "one")
	says(p, "header .lost", "not READY: vpp")
	silent(p, "header .lost", "containers")
	w.engine.Ready()
	says(p, "td", "READY")
	w.engine.Lost(errors.New("it has ended"))
	says(p, "header .lost", "not READY: containers, vpp")
}

// TestAHundredThousandValues scrolls, searches and filters. Only the rows that are seen exist.
func TestAHundredThousandValues(t *testing.T) {
	t.Parallel()
	const n = 100_000
	w := newWorld(t)
	w.many(n)
	w.commit("", route("10.9.0.0/16", "lan0"))
	p := w.open("#values?search=value/")
	bounded := func() {
		t.Helper()
		if rows := browser.Get[int](p, `document.querySelectorAll(".row").length`); rows == 0 || rows > 80 {
			t.Errorf("%d rows exist", rows)
		}
		if all := browser.Get[int](p, `document.getElementsByTagName("*").length`); all > 1200 {
			t.Errorf("%d elements exist", all)
		}
	}
	// shows waits until the first row that is seen has a number, and all below it follow.
	shows := func(first int) {
		t.Helper()
		p.Until(fmt.Sprintf(`(() => {
			const box = document.querySelector(".rows").getBoundingClientRect();
			const rows = [...document.querySelectorAll(".row")].filter((r) => r.getBoundingClientRect().top >= box.top && r.getBoundingClientRect().bottom <= box.bottom);
			return rows.length > 20 && rows.every((r, i) => r.querySelector(".key")?.title === %q + String(%d + i).padStart(6, "0"));
		})()`, manyPrefix+"value/", first))
		bounded()
	}
	says(p, ".total", "100\u202f000 of 100\u202f001")
	shows(0)
	for _, at := range []int{50_000, 99_900, 123, 77_777} {
		browser.Get[int](p, fmt.Sprintf(`document.querySelector(".rows").scrollTop = %d * 26`, at))
		shows(at)
	}
	// Rows that fly by are not read, one by one.
	before := w.requests.Load()
	browser.Get[bool](p, `(() => { const box = document.querySelector(".rows"); let y = 0; const step = () => { box.scrollTop = y; y += 26 * 500; if (y < 26 * 90000) requestAnimationFrame(step); else document.body.dataset.done = "1"; }; step(); return true; })()`)
	p.Until(`document.body.dataset.done === "1"`)
	p.Press(browser.Home)
	if asked := w.requests.Load() - before; asked > 60 {
		t.Errorf("scrolling over 90,000 rows asked %d times", asked)
	}
	browser.Get[bool](p, `(document.querySelector(".rows").focus(), true)`)
	p.Press(browser.End)
	says(p, ".row.cursor", "099999")
	p.Press(browser.Home)
	says(p, ".row.cursor", "000000")
	shows(0)

	p.Press("/")
	p.Until(`document.activeElement.id === "search"`)
	browser.Get[bool](p, `(document.activeElement.select(), true)`)
	p.Type("VALUE 9999")
	says(p, ".total", "19 of 100\u202f001")
	bounded()
	// A change of more values than an event names.
	w.many(n + 1000)
	says(p, ".counts", "101\u202f000")
	p.Go("#values?state=PENDING")
	says(p, ".total", "1 of 101\u202f001")
}

// hostile is a text that would run a program if it were HTML.
const hostile = `<img src=x onerror="document.body.dataset.owned=1"><script>document.body.dataset.owned=1</script>`

// TestTextsStayTexts shows hostile texts everywhere: in keys, fields, errors and descriptions.
func TestTextsStayTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad := dummy("lan"+hostile, 1400)
	bad.HostIfName = hostile
	bad.IpAddresses = []string{hostile}
	w.fault = hostile
	w.breaks(interfacePrefix+bad.Name, true)
	w.commit(hostile, bad, route("10.8.0.0/16", hostile))
	p := w.open("#problems")
	says(p, ".row .key", "onerror")
	p.Click(".row")
	says(p, "#detail .fields", hostile)
	says(p, "#detail .error", hostile)
	p.Go("#transactions?txn=0")
	says(p, "#detail", hostile)
	p.Go("#values?search=" + "%3Cscript%3E" + "&state=%3Cb%3E")
	p.Until(`document.querySelector(".notice")`)
	p.Allow("/scheduler/values") // it has no such state
	if browser.Get[bool](p, `document.body.dataset.owned === "1" || document.querySelector("img, main script, [onerror], [onload]") !== null`) {
		t.Error("a text became a program")
	}
}

// TestTheKeyboardIsEnough uses no mouse.
func TestTheKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("", dummy("lan0", 0), dummy("lan1", 0), route("10.9.0.0/16", "lan9"))
	p := w.open("")
	p.Press("2")
	p.Until(`document.activeElement.classList.contains("rows")`)
	says(p, ".row.cursor", "lan0")
	p.Press(browser.Down)
	says(p, ".row.cursor", "lan1")
	p.Press("k", "j", browser.Enter)
	p.Until(`document.activeElement.id === "detail"`)
	says(p, "#detail h2", "lan1")
	p.Press(browser.Escape)
	p.Until(`!document.getElementById("detail") && document.activeElement.classList.contains("rows")`)
	p.Press("/")
	p.Until(`document.activeElement.id === "search"`)
	p.Press("1", "0", ".", "9", browser.Enter)
	says(p, ".row.cursor", "10.9.0.0/16/lan9")
	p.Until(`document.activeElement.classList.contains("rows") && document.querySelectorAll(".row").length === 1`)
	p.Press("?")
	p.Until(`document.querySelector("dialog").open`)
	p.Press(browser.Escape)
	p.Until(`!document.querySelector("dialog").open`)
	// Each stop of the tabulator is a link, a button, a field, or a part that says what it is.
	seen := map[string]bool{}
	for range 40 {
		p.Press(browser.Tab)
		seen[browser.Get[string](p, `(() => { const e = document.activeElement; return e.tagName + " " + (e.getAttribute("aria-label") ?? e.textContent ?? "").slice(0, 30); })()`)] = true
	}
	for _, want := range []string{"A Problems1", "A Plan", "INPUT Search keys", "DIV Values", "BUTTON Keys"} {
		found := false
		for got := range seen {
			found = found || strings.HasPrefix(got, want)
		}
		if !found {
			t.Errorf("the tabulator never reaches %s: %v", want, seen)
		}
	}
	for i, name := range []string{"Problems", "Values", "Transactions", "Sources", "Drift", "Plan"} {
		browser.Get[bool](p, `(document.activeElement.blur(), true)`)
		p.Press(fmt.Sprint(i + 1))
		says(p, "[aria-current=page]", name)
	}
	if lacks := browser.Get[int](p, `[...document.querySelectorAll("button, a, input, textarea, select")].filter((e) => !(e.textContent || e.getAttribute("aria-label") || e.title || e.labels?.length)).length`); lacks > 0 {
		t.Errorf("%d controls have no name", lacks)
	}
}

// luminance computes the relative luminance and contrast of WCAG 2 in the page.
const contrasts = `(() => {
	const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgb = (c) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const light = (c) => { const [r, g, b] = rgb(c).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (rgb(c)[3] === 255) return c; } return "white"; };
	let worst = [99, ""];
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.closest("svg, noscript, script, dialog, title, :disabled") || !e.getClientRects().length) continue;
		const a = light(getComputedStyle(e).color), b = light(behind(e));
		const c = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (c < worst[0]) worst = [c, e.className + ": " + e.textContent.slice(0, 40)];
	}
	return worst;
})()`

// scene is a world with some of everything, for themes and pictures.
func scene(t *testing.T) *world {
	w := newWorld(t)
	w.commit("the base", dummy("lan0", 1400), dummy("lan1", 9000), dummy("uplink", 1500), route("10.20.0.0/16", "lan0"), route("10.21.0.0/16", "lan0"), route("10.22.0.0/16", "lan1"))
	w.breaks(interfacePrefix+"tunnel4", true)
	w.commit("branch offices", dummy("lan0", 1500), dummy("tunnel4", 1380), dummy("lan7", 10000), route("10.40.0.0/16", "tunnel4"), route("10.41.0.0/16", "tunnel4"), route("0.0.0.0/0", "wan0"))
	w.many(2000)
	return w
}

// TestThemes shows both themes by the preference of the system and by the switch. All texts are
// legible in both: their contrast is at least 4.5 (WCAG 2, level AA).
func TestThemes(t *testing.T) {
	t.Parallel()
	w := scene(t)
	p := w.open("#problems?key=" + routePrefix + "10.40.0.0/16/tunnel4")
	says(p, "#detail .graph", "tunnel4")
	says(p, "#detail .history", "PENDING")
	dark := func() bool {
		return browser.Get[int](p, `Number(/\d+/.exec(getComputedStyle(document.body).backgroundColor)[0])`) < 128
	}
	for _, scheme := range []string{"dark", "light"} {
		p.Prefer(scheme)
		if dark() != (scheme == "dark") {
			t.Errorf("the page does not follow the preference for %s", scheme)
		}
		for _, hash := range []string{"", "#values", "#transactions?txn=1", "#sources", "#drift", "#plan", "#problems?key=" + interfacePrefix + "lan0"} {
			p.Go(hash)
			p.Until(`document.querySelector(".view")`)
			if worst := browser.Get[[2]any](p, contrasts); worst[0].(float64) < 4.5 {
				t.Errorf("%s %s: the contrast of %v is %.2f", scheme, hash, worst[1], math.Floor(worst[0].(float64)*100)/100)
			}
		}
	}
	p.Go("#problems?key=" + routePrefix + "10.40.0.0/16/tunnel4")
	p.Press("t")
	if !dark() {
		t.Error("the switch does not choose the dark theme")
	}
	p.Prefer("dark")
	p.Press("t")
	if dark() {
		t.Error("the switch does not choose the light theme")
	}
	p.Press("t")
	if !dark() {
		t.Error("the switch does not return to the theme of the system")
	}
	if *pictures == "" {
		return
	}
	says(p, "#detail .graph", "tunnel4")
	says(p, "#detail table", "filedb")
	for _, scheme := range []string{"dark", "light"} {
		p.Prefer(scheme)
		p.Until(`!document.body.innerText.includes("Reading")`)
		path := filepath.Join(*pictures, "ui-"+scheme+".png")
		p.Save(path)
		if info, err := os.Stat(path); err != nil || info.Size() > 150_000 {
			t.Errorf("the picture is too large: %v %v", info, err)
		}
	}
}

// TestNarrowWindows has no view that is wider than the window.
func TestNarrowWindows(t *testing.T) {
	t.Parallel()
	w := scene(t)
	p := w.open("")
	p.Resize(browser.Narrow())
	for _, hash := range []string{"#problems", "#values", "#transactions", "#transactions?txn=1", "#sources", "#plan", "#problems?key=" + routePrefix + "10.40.0.0/16/tunnel4"} {
		p.Go(hash)
		p.Until(`document.querySelector(".view") && document.documentElement.scrollWidth <= innerWidth`)
	}
	// A view may scroll by itself, so a table could still be cut.
	for _, size := range []browser.Size{browser.Narrow(), {Width: 480, Height: 800}} {
		p.Resize(size)
		p.Go("#sources")
		p.Until(`(() => { const v = document.querySelector(".view"); return document.querySelector("table.wide td:last-child") && v.scrollWidth <= v.clientWidth; })()`)
	}
}

// TestNothingIsAskedWhileNothingChanges waits until the page has shown some seconds, which it
// counts by itself.
func TestNothingIsAskedWhileNothingChanges(t *testing.T) {
	t.Parallel()
	w := scene(t)
	p := w.open("#problems?key=" + interfacePrefix + "lan0")
	says(p, "#detail .history", "1500")
	// The page counts the seconds that it shows.
	seconds := func(n int) {
		browser.Get[string](p, `document.body.dataset.ticks = "0"`)
		p.Until(fmt.Sprintf(`(() => { const d = document.body.dataset, now = document.querySelector(".uptime").textContent; if (d.last !== now) { d.last = now; d.ticks = String(Number(d.ticks) + 1); } return Number(d.ticks) >= %d; })()`, n))
	}
	// On a busy machine the last answers to the changes above come late.
	for range 10 {
		before := w.requests.Load()
		seconds(6)
		if w.requests.Load() == before {
			return
		}
	}
	t.Error("an idle page never stops asking")
}

// logIn gives the name of the user and a password to the form of the page.
func logIn(p *browser.Page, password string) {
	p.Until(`document.querySelector(".login [name=username]")`)
	for field, text := range map[string]string{"username": "ann", "password": password} {
		browser.Get[bool](p, fmt.Sprintf(`((e) => { e.focus(); e.select(); return true; })(document.querySelector("[name=%s]"))`, field))
		p.Type(text)
	}
	p.Press(browser.Enter)
}

// TestTheLogin serves the page with users. It asks for a name and a password, and shows the state
// after the right ones. The token is in a cookie that scripts cannot read.
func TestTheLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("", route("10.9.0.0/16", "lan9"))
	p := browser.Open(t, w.protected("dump")+"/ui", browser.Desk())
	p.Allow("401")
	p.Allow("/info/version") // ann lacks the permission
	p.Allow("/readiness")    // its status is 500 while something is missing
	p.Until(`document.querySelector(".login [name=username]")`)
	if browser.Get[bool](p, `document.body.textContent.includes("10.9.0.0")`) {
		t.Error("the page shows values without a user")
	}
	logIn(p, "wrong")
	says(p, ".login .bad", "unknown name or wrong password")
	logIn(p, "pass")
	says(p, ".row", "10.9.0.0/16/lan9")
	p.Until(`document.querySelector(".line.live")`)
	if cookie := browser.Get[string](p, "document.cookie"); cookie != "" {
		t.Errorf("scripts can read the cookie %s", cookie)
	}
}

// TestAnInterruption breaks the stream while something changes.
func TestAnInterruption(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.open("")
	p.Allow("net::ERR")
	for i := range 3 {
		w.server.CloseClientConnections()
		network := fmt.Sprintf("10.%d.0.0/16", i)
		w.commit("", route(network, "lan9"))
		says(p, ".row", network)
		p.Until(`document.querySelector(".line.live")`)
	}
}
