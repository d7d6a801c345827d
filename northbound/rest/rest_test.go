package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// What makes no sense is refused, with words.
func TestRefusals(t *testing.T) {
	tests := []refusal{
		{"GET", "/scheduler/dump?view=none", "", 500, `argument view=\"none\": expected one of SB, NB, cached`},
		{"GET", "/scheduler/dump?descriptor=route&key-prefix=config/", "", 500, "exclude each other"},
		{"GET", "/scheduler/dump?descriptor=none", "", 500, "no descriptor has it"},
		{"GET", "/scheduler/dump?descriptor=host", "", 500, "has no Retrieve"},
		{"GET", "/scheduler/status?key=a&key=b", "", 500, "given 2 times"},
		{"GET", "/scheduler/status?descriptor=none", "", 500, "no descriptor has it"},
		{"GET", "/scheduler/txn-history?seq-num=one", "", 500, "whole number"},
		{"GET", "/scheduler/txn-history?since=yesterday", "", 500, "nanoseconds"},
		{"GET", "/scheduler/txn-history?until=x", "", 500, "nanoseconds"},
		{"GET", "/scheduler/txn-history?format=xml", "", 500, "json, text"},
		{"GET", "/scheduler/key-timeline", "", 500, "argument key is missing"},
		{"GET", "/scheduler/key-timeline?key=a&time=x", "", 500, "nanoseconds"},
		{"GET", "/scheduler/graph-snapshot?time=x", "", 500, "nanoseconds"},
		{"GET", "/scheduler/flag-stats", "", 500, "last-update, error"},
		{"GET", "/scheduler/flag-stats?flag=colour", "", 500, "last-update, error"},
		{"GET", "/scheduler/graph?txn=99", "", 404, "no transaction #99"},
		{"GET", "/scheduler/graph?format=gif", "", 500, "svg, png"},
		{"GET", "/scheduler/explain", "", 400, "argument key is missing"},
		{"GET", "/scheduler/explain?key=a&format=xml", "", 400, "json, text"},
		{"POST", "/scheduler/plan", "", 400, "body is empty"},
		{"POST", "/scheduler/plan", "{[", 400, "line 1: "},
		{"POST", "/scheduler/plan", "just text", 400, "line 1: found"},
		{"POST", "/scheduler/plan", "[\xff]", 400, "line 1: not a text file"},
		{"POST", "/scheduler/plan", strings.Repeat(" ", defaultMaxBody+1), 413, "the maximum is 8388608 bytes"},
		{"GET", "/scheduler/status?key=%zz", "", 400, "invalid URL escape"},
		{"GET", "/scheduler/status?prefix=a", "", 400, "unknown argument prefix: expected key= or descriptor= or key-prefix="},
		{"GET", "/scheduler/txn-history?formt=text", "", 400, "did you mean format?"},
		{"GET", "/info/version?key=a", "", 400, "unknown argument key: expected none"},
		{"POST", "/scheduler/plan?replace=perhaps", "[]", 400, "true"},
		{"GET", "/log/etcd/warn", "", 405, "expected PUT"},
		{"GET", "/dump/linux/v2/interface", "", 404, "did you mean /dump/linux/v2/interfaces?"},
		{"POST", "/scheduler/retry", "", 400, "argument key is missing"},
		{"POST", "/scheduler/retry?key=config/nothing", "", 404, "there is no such value"},
		{"POST", "/scheduler/downstream-resync?retry=perhaps", "", 500, "true"},
		{"GET", "/scheduler/plan", "", 405, "expected POST"},
		{"GET", "/scheduler/downstream-resync", "", 405, "expected POST"},
		{"DELETE", "/scheduler/dump", "", 405, "expected GET"},
		{"POST", "/", "", 405, "expected GET"},
		{"GET", "/nothing", "", 404, "GET / lists"},
		{"GET", "/sources?key=a&key-prefix=b", "", 400, "exclude each other"},
		{"GET", "/scheduler/dumps", "", 404, "did you mean /scheduler/dump?"},
		{"GET", "/scheduler/", "", 404, "no such path"},
	}
	inWorld(t, func(w *world) {
		w.refuses(tests)
		w.refuses(w.without())
	})
}

// A resync whose verbs fail is an error, and what failed is tried again, whether it asks for that
// or not. A page of another site cannot ask for a resync.
func TestResyncFails(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, query := range []string{"", "?retry=false", "?retry=true"} {
			name := "if" + query
			w.must(w.commit("", &interfaces.Interface{Name: name, Type: interfaces.Interface_DUMMY}))
			delete(w.stands, ifPrefix+name)
			w.broken[ifPrefix+name] = true
			if status, answer := w.ask("POST", "/scheduler/downstream-resync"+query, ""); status != 500 || !strings.Contains(answer, "out of memory") {
				t.Errorf("%d %s", status, answer)
			}
			if st, _ := w.sched.Status(ifPrefix + name); st.State != scheduler.Retrying {
				t.Errorf("after resync%s it is %s, want RETRYING", query, st.State)
			}
		}
		from := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/scheduler/downstream-resync", nil)
		from.Header.Set("Sec-Fetch-Site", "cross-site")
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, from)
		if rec.Code != http.StatusForbidden {
			t.Errorf("another site: %d", rec.Code)
		}
	})
}

// What has failed is tried again, as often as somebody says so; what stands is left alone.
func TestRetry(t *testing.T) {
	const key = ifPrefix + "if1"
	retry := func(w *world, status int, says string) {
		t.Helper()
		if got, answer := w.ask("POST", "/scheduler/retry?key=/vnf-agent/vpp1/"+key, ""); got != status || !strings.Contains(answer, says) {
			t.Errorf("%d %s, want %d %s", got, answer, status, says)
		}
	}
	inWorld(t, func(w *world) {
		w.broken[key] = true
		if w.commit("", &interfaces.Interface{Name: "if1", Type: interfaces.Interface_DUMMY}) == nil {
			t.Error("nothing failed")
		}
		retry(w, 500, "out of memory")
		delete(w.broken, key)
		retry(w, 200, `"NewState": "CONFIGURED"`)
		retry(w, 409, "the value has not failed: it is CONFIGURED")
	})
}

func TestGraphAsPNG(t *testing.T) {
	inWorld(t, func(w *world) {
		w.life()
		status, answer := w.ask("GET", "/scheduler/graph?format=png", "")
		img, err := png.Decode(bytes.NewReader([]byte(answer)))
		if status != 200 || err != nil {
			t.Fatalf("%d %v", status, err)
		}
		colours := map[any]bool{}
		for x := range img.Bounds().Dx() {
			for y := range img.Bounds().Dy() {
				colours[img.At(x, y)] = true
			}
		}
		if len(colours) < 7 { // white, black, grey, and four states
			t.Errorf("only %d colours", len(colours))
		}
	})
}

// The text of transactions is what the scheduler makes of them, the whole of it.
func TestHistoryAsText(t *testing.T) {
	inWorld(t, func(w *world) {
		w.life()
		want := ""
		for _, r := range w.sched.History() {
			want += txnlog.Text(r, -1)
			if _, got := w.ask("GET", fmt.Sprintf("/scheduler/txn-history?format=text&seq-num=%d", r.Seq), ""); got != txnlog.Text(r, -1) {
				t.Errorf("#%d is\n%s", r.Seq, got)
			}
		}
		if status, got := w.ask("GET", "/scheduler/txn-history?format=text", ""); status != 200 || got != want {
			t.Errorf("%d\n%s\nwant\n%s", status, got, want)
		}
	})
}

// Keys and prefixes may be those of a store too.
func TestWholeKeys(t *testing.T) {
	inWorld(t, func(w *world) {
		w.life()
		for _, path := range []string{
			"/scheduler/status?key=%sconfig/linux/l3/v2/route/10.9.0.0/16/if9",
			"/scheduler/status?key-prefix=%sconfig/linux/l3/",
			"/scheduler/dump?view=NB&key-prefix=%sconfig/linux/l3/v2/route/",
			"/scheduler/key-timeline?key=%sconfig/linux/l3/v2/route/10.2.0.0/16/if1",
			"/scheduler/flag-stats?flag=value-state&prefix=%sconfig/linux/l3/",
		} {
			_, short := w.ask("GET", fmt.Sprintf(path, ""), "")
			_, whole := w.ask("GET", fmt.Sprintf(path, "/vnf-agent/vpp1/"), "")
			if short != whole || len(short) < 50 {
				t.Errorf("%s\n%s\n%s", path, short, whole)
			}
		}
	})
}

// What is derived from a value is checked with it; that nothing implements it, or that others
// are missing, is no fault of it.
func TestValidate(t *testing.T) {
	inWorld(t, func(w *world) {
		for body, want := range map[string]string{
			`[{key: config/linux/interfaces/v2/interface/a, value: {name: a, ip_addresses: [10.0.0.1/24]}}]`: "",
			`[{key: config/linux/interfaces/v2/interface/a, value: {name: a, ip_addresses: [nowhere]}}]`:     "linux/interface/a/address/nowhere: invalid value: expected an address",
			`[{key: config/vpp/v2/interfaces/loop0, value: {name: loop0}}]`:                                  "",
			`[{key: config/linux/interfaces/v2/interface/a, value: null}]`:                                   "",
			`[{key: config/nothing, value: {}}]`:                                                             "no such model",
		} {
			status, answer := w.ask("POST", "/scheduler/validate", body)
			var got []wire.Invalid
			if err := json.Unmarshal([]byte(answer), &got); err != nil || status != 200 || got == nil {
				t.Fatalf("%s: %d %s: %v", body, status, answer, err)
			}
			if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0].Error, want)) {
				t.Errorf("%s: %+v, want %q", body, got, want)
			}
		}
	})
}

// Of two that claim one thing the second is wrong, and says where it is.
func TestValidateTellsConflicts(t *testing.T) {
	const body = `
- {key: config/linux/interfaces/v2/interface/b, value: {name: b, host_if_name: eth0}}
- {key: config/linux/interfaces/v2/interface/a, value: {name: a, host_if_name: eth0}}
- {key: config/linux/interfaces/v2/interface/c, value: {name: c, host_if_name: eth1}}
`
	inWorld(t, func(w *world) {
		_, answer := w.ask("POST", "/scheduler/validate", body)
		var got []wire.Invalid
		w.must(json.Unmarshal([]byte(answer), &got))
		if len(got) != 1 || got[0].Key != ifPrefix+"b" || got[0].Line != 2 || strings.Join(got[0].Fields, " ") != "host_if_name" || !strings.Contains(got[0].Error, "(see "+ifPrefix+"a)") {
			t.Errorf("%+v", got)
		}
	})
}

// A plan changes nothing, and says nothing once it has been carried out.
func TestPlanOnlyPlans(t *testing.T) {
	const body = `[{"key":"config/linux/interfaces/v2/interface/if1","value":{"name":"if1","type":"DUMMY"}}]`
	plan := func(w *world) (p wire.Plan) {
		_, answer := w.ask("POST", "/scheduler/plan", body)
		w.must(json.Unmarshal([]byte(answer), &p))
		return p
	}
	inWorld(t, func(w *world) {
		if p := plan(w); len(p.Operations) != 2 || len(p.Invalid) != 0 {
			t.Errorf("%+v", p)
		}
		if len(w.sched.Statuses("")) != 0 || len(w.stands) != 0 || len(w.sched.History()) != 0 {
			t.Error("something happened")
		}
		w.must(w.commit("", &interfaces.Interface{Name: "if1", Type: interfaces.Interface_DUMMY}))
		if p := plan(w); len(p.Operations) != 0 {
			t.Errorf("%+v", p)
		}
	})
}

func TestPlanListsWarnings(t *testing.T) {
	const body = "linuxConfig:\n  interfaces:\n    - {name: if1, type: DUMMY, enabled: yes}\n"
	inWorld(t, func(w *world) {
		_, answer := w.ask("POST", "/scheduler/plan", body)
		var p wire.Plan
		w.must(json.Unmarshal([]byte(answer), &p))
		if len(p.Invalid) != 0 || len(p.Warnings) != 1 || p.Warnings[0].Line != 3 || !strings.Contains(p.Warnings[0].Text, "yes is taken for true") {
			t.Errorf("%s", answer)
		}
		if _, answer := w.ask("POST", "/scheduler/plan?format=text", body); !strings.Contains(answer, "  * warnings:\n      - line 3: config/linux/interfaces/v2/interface/if1: yes is taken") {
			t.Errorf("%s", answer)
		}
	})
}

func TestPlanListsWhatIsInvalid(t *testing.T) {
	const body = `
data:
  - {key: config/linux/interfaces/v2/interface/if1, value: {name: if2, type: DUMMY}}
  - {key: /vnf-agent/other/config/linux/interfaces/v2/interface/if1, value: {name: if1}}
  - {key: config/none/x, value: {}}
  - {value: {}}
  - {key: a, valu: {}}
  - {key: [a]}
  - text
  - {key: config/linux/interfaces/v2/interface/if1, value: {name: if1, type: DUMMY}}
  - {key: config/linux/interfaces/v2/interface/if1, value: {name: if1, type: DUMMY}}
linuxconf: {}
linuxConfig: {interface: []}
`
	says := []string{
		"disagree", "does not belong to this agent", "no descriptor implements", "entry without a key", "unknown field",
		"key: found", "found", "already in line 10", "linuxConfig", "interfaces",
	}
	inWorld(t, func(w *world) {
		status, answer := w.ask("POST", "/scheduler/plan", body)
		var p wire.Plan
		w.must(json.Unmarshal([]byte(answer), &p))
		if status != 200 || len(p.Invalid) != len(says) {
			t.Fatalf("%d %s", status, answer)
		}
		for i, want := range says {
			if got := p.Invalid[i]; !strings.Contains(got.Error, want) || got.Line == 0 {
				t.Errorf("%+v, want %s", got, want)
			}
		}
		if len(p.Operations) != 2 {
			t.Errorf("%+v", p.Operations)
		}
	})
}

// refuses sends requests that are refused.
func (w *world) refuses(tests []refusal) {
	w.t.Helper()
	for _, tt := range tests {
		status, answer := w.ask(tt.method, tt.url, tt.body)
		if status != tt.status || !strings.Contains(answer, tt.says) {
			w.t.Errorf("%s %s: %d %s, want %d %s", tt.method, tt.url, status, answer, tt.status, tt.says)
		}
		var failure wire.Failure
		if json.Unmarshal([]byte(answer), &failure) != nil || failure.Error == "" {
			w.t.Errorf("%s %s: %s is no failure", tt.method, tt.url, answer)
		}
	}
}

// without makes the handler that of an agent without optional parts, and returns what it
// refuses.
func (w *world) without() []refusal {
	w.handler = Handler(Options{Scheduler: w.sched})
	return []refusal{
		{"GET", "/vpp/info", "", 404, "this agent has no VPP"},
		{"POST", "/vpp/command", `{"vppclicommand": "show version"}`, 404, "this agent has no VPP"},
		{"GET", "/sources", "", 404, "this agent has no sources"},
		{"GET", "/liveness", "", 404, "this agent has no health"},
		{"GET", "/readiness", "", 404, "this agent has no health"},
		{"GET", "/log/list", "", 404, "this agent has no log levels"},
		{"PUT", "/log/a/info", "", 404, "this agent has no log levels"},
		{"GET", "/metrics", "", 404, "does not have these counters"},
		{"GET", "/vpp/telemetry", "", 404, "does not have these counters"},
		{"GET", "/stats/configurator", "", 404, "does not have these counters"},
		{"GET", "/metrics/govppmux.stats", "", 404, "does not have these counters"},
	}
}

// A refusal is a request that is refused, and the answer.
type refusal struct {
	method, url, body string
	status            int
	says              string
}
