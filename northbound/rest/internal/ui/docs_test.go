package ui_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/testkit/browser"
)

// document returns docs/ui.md.
func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/ui.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tableOf returns the rows of the table of the document that has this header in its first column.
func tableOf(t *testing.T, header string) (out [][2]string) {
	t.Helper()
	_, rest, found := strings.Cut(document(t), "\n| "+header+" |")
	_, rows, ruled := strings.Cut(rest, "|---|---|\n")
	if !found || !ruled {
		t.Fatalf("docs/ui.md has no table of each %s", header)
	}
	for line := range strings.Lines(rows) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			break
		}
		if first := strings.TrimSpace(cells[1]); !strings.HasPrefix(first, "---") {
			out = append(out, [2]string{first, strings.TrimSpace(cells[2])})
		}
	}
	return out
}

// promises fails if the document does not say a sentence any more: then the test of it is outdated.
func promises(t *testing.T, sentence string) {
	t.Helper()
	if !strings.Contains(strings.ReplaceAll(document(t), "\n", " "), sentence) {
		t.Errorf("docs/ui.md does not say %q: did the promise change?", sentence)
	}
}

// viewsShow has for each row of the table of views what the page has to show of a scene.
func viewsShow(w *world) map[[2]string]func(p *browser.Page) {
	return map[[2]string]func(p *browser.Page){
		{"Problems", "every declared value that is not CONFIGURED, the worst states first, with the last causes of that in full"}: func(p *browser.Page) {
			p.Until(`document.querySelectorAll(".row").length === 6`)
			for _, name := range []string{"tunnel4", "lan7", "10.40.0.0/16/tunnel4", "10.41.0.0/16/tunnel4", "0.0.0.0/0/wan0", "lan1"} {
				says(p, ".row .key", name)
			}
			says(p, ".row .reason", "no buffer space available")
			says(p, ".row .reason", "at most 9216")
			says(p, ".row:first-child .state", "FAILED")
			says(p, ".row .reason", "state/wan0/UP, which nobody declares")
		},
		{"Values", "all values: a search for words in keys, and filters by state"}: func(p *browser.Page) {
			p.Click(".chips .s-pending")
			p.Until(`document.querySelectorAll(".row").length === 3`)
			p.Click(".chips .s-pending")
			p.Press("/")
			p.Until(`document.activeElement.id === "search"`)
			p.Type("route 10.2")
			p.Until(`document.querySelectorAll(".row").length === 3`)
			says(p, ".row .key", "10.22.0.0/16/lan1")
		},
		{"Transactions", "the history, in the words of `agentctl config history`: times, planned and executed operations with the fields that they change, errors"}: func(p *browser.Page) {
			says(p, ".row", "branch offices")
			p.Go("#transactions?txn=1")
			for _, name := range []string{"Start", "Stop", "Took"} {
				says(p, "#detail .times dt", name)
			}
			for _, tab := range []string{"Execution", "Plan"} {
				says(p, "#detail .tabs button", tab)
			}
			says(p, "#detail .operations", "~ mtu: 1400 -> 1500")
			says(p, "#detail .operations .bad", "no buffer space available")
		},
		{"Sources", "sources with keys, refused values and problems; connections; reasons why the agent is not ready"}: func(p *browser.Page) {
			for _, title := range []string{"Sources", "Connections", "Readiness"} {
				says(p, "h3", title)
			}
			for _, column := range []string{"Keys", "Refused", "problems"} {
				says(p, "th", column)
			}
			says(p, "td", "lan.yaml:3: no mapping")
			says(p, ".lines li", "have not been applied yet")
		},
		{"Drift", "values that differ from the system's, on request, and the state of those that could not be repaired"}: func(p *browser.Page) {
			says(p, ".bar .total", "Nothing is changed.")
			p.Click(".bar .main")
			says(p, ".operations li", "~ mtu: 1500 -> 1300")
			says(p, ".operations li .state", "FAILED")
		},
		{"Plan", "the operations that `agentctl apply` of a pasted text or a file would cause, or of the same values in a store; nothing is changed"}: func(p *browser.Page) {
			p.Until(`document.querySelector("input[type=file]")`)
			p.Until(`document.activeElement.id === "plan-text"`)
			p.Type("linuxConfig:\n  interfaces:\n  - {name: spare, type: DUMMY}\n")
			p.Click(".edit .main")
			says(p, ".outcome", "spare")
			if st, known := w.sched.Status(interfacePrefix + "spare"); known {
				w.t.Errorf("the plan was executed: %+v", st)
			}
		},
	}
}

// TestTheViewsOfTheDocument compares the table of views with the page: their names, their order, and
// what each shows.
func TestTheViewsOfTheDocument(t *testing.T) {
	t.Parallel()
	w := scene(t)
	w.set(interfacePrefix+"lan0", dummy("lan0", 1300))
	w.breaks(interfacePrefix+"lan1", true)
	w.commit("one that fails", dummy("lan1", 8000))
	p := w.open("")
	views := tableOf(t, "view")
	var names []string
	for _, v := range views {
		names = append(names, v[0])
	}
	shown := browser.Get[[]string](p, `[...document.querySelectorAll("nav a")].map((a) => a.firstChild.textContent)`)
	if !slices.Equal(names, shown) {
		t.Errorf("docs/ui.md has the views %q, and the page %q", names, shown)
	}
	check := viewsShow(w)
	for i, v := range views {
		if check[v] == nil {
			t.Errorf("no test knows what %q shows: %s", v[0], v[1])
			continue
		}
		browser.Get[bool](p, `(document.activeElement.blur(), true)`)
		p.Press(fmt.Sprint(i + 1))
		says(p, "[aria-current=page]", v[0])
		check[v](p)
	}
}

// TestTheDetailOfTheDocument opens a value. Its address shows the same to somebody else.
func TestTheDetailOfTheDocument(t *testing.T) {
	t.Parallel()
	promises(t, "A click on a value opens it beside the list: the reason of its state, declared and actual fields, its sources, its neighbours in the graph, and its history.")
	promises(t, "The address of the browser names the view and the value, so it can be sent to a colleague.")
	w := scene(t)
	p := w.open("#values?search=10.40")
	p.Click(".row")
	complete := func(p *browser.Page) {
		t.Helper()
		says(p, "[aria-current=page]", "Values")
		says(p, "#detail h2", "10.40.0.0/16/tunnel4")
		for _, title := range []string{"Why", "Fields", "Sources", "Graph", "History"} {
			says(p, "#detail h3", title)
		}
		p.Until(`document.querySelector(".view").getBoundingClientRect().right <= document.getElementById("detail").getBoundingClientRect().left`)
	}
	complete(p)
	complete(w.open(browser.Get[string](p, "location.hash")))
}

// keysDo has for each row of the table of keys a check that they do it. Each begins in the view
// of values, in which the list has the focus.
func keysDo() map[[2]string]func(p *browser.Page) {
	cursor := func(p *browser.Page, number string) { says(p, ".row.cursor", "value/"+number) }
	return map[[2]string]func(p *browser.Page){
		{"`1` to `6`", "shows a view"}: func(p *browser.Page) {
			for i, name := range []string{"Problems", "Values", "Transactions", "Sources", "Drift", "Plan"} {
				browser.Get[bool](p, `(document.activeElement.blur(), true)`)
				p.Press(fmt.Sprint(i + 1))
				says(p, "[aria-current=page]", name)
			}
		},
		{"`/`", "searches values"}: func(p *browser.Page) {
			p.Press("/")
			p.Until(`document.activeElement.id === "search"`)
		},
		{"`↑`, `↓`, `k`, `j`", "moves within a list"}: func(p *browser.Page) {
			for _, step := range [][2]string{{browser.Down, "000001"}, {"j", "000002"}, {browser.Up, "000001"}, {"k", "000000"}} {
				p.Press(step[0])
				cursor(p, step[1])
			}
		},
		{"`PgUp`, `PgDn`, `Home`, `End`", "moves far within a list"}: func(p *browser.Page) {
			p.Press(browser.End)
			cursor(p, "000999")
			p.Press(browser.PageUp)
			silent(p, ".row.cursor", "000999")
			p.Press(browser.PageDown)
			cursor(p, "000999")
			p.Press(browser.Home)
			cursor(p, "000000")
		},
		{"`Enter`", "opens the detail of a row"}: func(p *browser.Page) {
			p.Press(browser.Enter)
			says(p, "#detail h2", "000000")
		},
		{"`Esc`", "leaves a field, or closes the detail"}: func(p *browser.Page) {
			p.Press(browser.Enter)
			says(p, "#detail h2", "000000")
			p.Press("/")
			p.Until(`document.activeElement.id === "search"`)
			p.Press(browser.Escape)
			p.Until(`document.activeElement.classList.contains("rows") && document.getElementById("detail")`)
			p.Press(browser.Escape)
			p.Until(`!document.getElementById("detail")`)
		},
		{"`Tab`", "goes to the next part of the page"}: func(p *browser.Page) {
			p.Press(browser.Enter)
			p.Until(`document.activeElement.id === "detail"`)
			p.Press(browser.Tab)
			p.Until(`document.activeElement.closest("#detail button")`)
		},
		{"`Ctrl+Enter`", "plans the text"}: func(p *browser.Page) {
			p.Press("6")
			p.Until(`document.activeElement.id === "plan-text"`)
			p.Type("linuxConfig:\n  interfaces:\n  - {name: spare, type: DUMMY}\n")
			browser.Get[bool](p, `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true, cancelable: true })) || true`)
			says(p, ".outcome", "spare")
		},
		{"`t`", "changes the theme: that of the system, dark, light"}: func(p *browser.Page) {
			for _, name := range []string{"dark", "light", "system"} {
				p.Press("t")
				says(p, "header button", "theme: "+name)
			}
		},
		{"`?`", "lists the keys"}: func(p *browser.Page) {
			p.Press("?")
			p.Until(`document.querySelector("dialog").open`)
			p.Press(browser.Escape)
			p.Until(`!document.querySelector("dialog").open`)
		},
	}
}

// TestTheKeysOfTheDocument presses the keys of each row, and compares the table with the list that the
// page itself has of them.
func TestTheKeysOfTheDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(1000)
	p := w.open("")
	keys := func(text string) (out []string) {
		for word := range strings.FieldsSeq(strings.NewReplacer("`", "", ",", "").Replace(text)) {
			if !slices.Contains([]string{"to", "or", "…"}, word) {
				out = append(out, word)
			}
		}
		return out
	}
	check := keysDo()
	var documented, listed []string
	for _, row := range tableOf(t, "key") {
		documented = append(documented, keys(row[0])...)
		if check[row] == nil {
			t.Errorf("no test knows what %s does: %s", row[0], row[1])
			continue
		}
		p.Go("#values?search=value/")
		p.Until(`document.querySelector(".row.cursor")`)
		browser.Get[bool](p, `(document.querySelector(".rows").focus(), true)`)
		p.Press(browser.Home)
		says(p, ".row.cursor", "value/000000")
		check[row](p)
		delete(check, row)
	}
	for row := range maps.Keys(check) {
		t.Errorf("docs/ui.md does not say that %s: %s", row[0], row[1])
	}
	for _, text := range browser.Get[[]string](p, `[...document.querySelectorAll("dialog kbd")].map((k) => k.textContent)`) {
		listed = append(listed, keys(text)...)
	}
	slices.Sort(documented)
	slices.Sort(listed)
	if !slices.Equal(documented, listed) {
		t.Errorf("docs/ui.md has the keys %q, and the page %q", documented, listed)
	}
}

// permits matches a permission and what it is for, as the document has them.
var permits = regexp.MustCompile("`(\\w+)` for ([a-z, ]+)")

// TestThePermissionsOfTheDocument opens each view as users that have only one of the permissions that the
// document names. A view shows its content to those with the permission, and to others the reason.
func TestThePermissionsOfTheDocument(t *testing.T) {
	t.Parallel()
	_, sentence, found := strings.Cut(strings.ReplaceAll(document(t), "\n", " "), "with the permissions of its user: ")
	sentence, _, ended := strings.Cut(sentence, "(")
	if !found || !ended {
		t.Fatal("docs/ui.md does not name the permissions")
	}
	needs := map[string]string{} // the permission by what it is for
	for _, m := range permits.FindAllStringSubmatch(sentence, -1) {
		for _, what := range strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' }) {
			needs[what] = m[1]
		}
	}
	delete(needs, "and")
	// What each part of the page shows, after a button is clicked in some.
	type part struct{ hash, button, shows string }
	parts := map[string]part{
		"values":       {"#values", "", ".row"},
		"transactions": {"#transactions", "", ".row"},
		"drift":        {"#drift", ".bar .main", ".operations li"},
		"sources":      {"#sources", "", "table.wide td"},
		"plans":        {"#plan", ".edit .main", ".outcome .operations li"},
	}
	if !slices.Equal(slices.Sorted(maps.Keys(needs)), slices.Sorted(maps.Keys(parts))) {
		t.Fatalf("docs/ui.md has permissions for %v", needs)
	}
	for _, has := range slices.Compact(slices.Sorted(maps.Values(needs))) {
		t.Run(has, func(t *testing.T) {
			w := newWorld(t)
			w.commit("", dummy("lan0", 1400))
			w.set(interfacePrefix+"lan0", dummy("lan0", 1300))
			p := browser.Open(t, w.protected(has)+"/ui", browser.Desk())
			for _, refusal := range []string{"401", "403", "/readiness", "/scheduler/plan"} { // it may not be ready, and plans for no source
				p.Allow(refusal)
			}
			logIn(p, "pass")
			p.Until(`document.querySelector("main")`)
			for what, permission := range needs {
				at := parts[what]
				p.Go(at.hash)
				if what == "plans" {
					p.Until(`document.getElementById("plan-text")`)
					browser.Get[bool](p, `(document.getElementById("plan-text").focus(), true)`)
					p.Type("linuxConfig:\n  interfaces:\n  - {name: spare, type: DUMMY}\n")
				}
				if at.button != "" {
					p.Click(at.button)
				}
				if permission == has {
					p.Until(fmt.Sprintf("document.querySelector(%q)", at.shows))
				} else {
					says(p, ".notice.bad", "ann lacks the permission "+permission)
				}
			}
		})
	}
}
