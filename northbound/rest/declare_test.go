package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/orchestrator/trial"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// declaring runs f in a world whose clients declare values.
func declaring(t *testing.T, f func(w *world)) {
	inWorld(t, func(w *world) {
		orch := orchestrator.New(w.sched, orchestrator.Options{})
		o := w.options()
		keeper := trial.New(trial.Options{})
		keeper.Serve(orch)
		o.Trials = keeper
		o.Declarer, o.Sources, o.Previewer, o.Contents = keeper, orch, orch, orch
		w.handler, w.layers = Handler(o), keeper
		ctx, cancel := context.WithCancel(w.t.Context())
		ended := make(chan error, 1)
		go func() { ended <- orch.Run(ctx) }()
		synctest.Wait()
		f(w)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// refused declares invalid interfaces as another kind of client does, which may also declare a part of a request.
func (w *world) refused(layer string, names ...string) {
	w.t.Helper()
	q := orchestrator.Request{Layer: layer}
	for _, name := range names {
		q.Values = append(q.Values, orchestrator.Declared{Key: ifPrefix + name, Message: dummy(name, 10_000)})
	}
	if _, err := w.layers.Declare(w.t.Context(), q); err == nil {
		w.t.Error("invalid values are accepted")
	}
}

// says fails unless the answer has the status and the text.
func (w *world) says(method, url, body string, status int, text string) {
	w.t.Helper()
	code, answer := w.ask(method, url, body)
	if code != status || !strings.Contains(answer, text) {
		w.t.Errorf("%s %s: %d %s, want %d %s", method, url, code, answer, status, text)
	}
}

// TestVersion declares a value only if nobody has changed it since it was read.
func TestVersion(t *testing.T) {
	declaring(t, func(w *world) {
		const mtu = "linuxConfig: {interfaces: [{name: if1, type: DUMMY, mtu: %d}]}"
		version := func(source string) string {
			_, answer := w.ask("GET", "/configuration?format=json&key="+ifPrefix+"if1&source="+source, "")
			var out wire.Export
			if err := json.Unmarshal([]byte(answer), &out); err != nil || out.Version == "" {
				t.Fatalf("%v: %s", err, answer)
			}
			return out.Version
		}
		w.says("PUT", "/configuration?version=0", fmt.Sprintf(mtu, 1400), 412, "the value has changed since it had the version 0")
		w.says("GET", "/configuration", "", 200, "{}\n")
		w.says("PUT", "/configuration", fmt.Sprintf(mtu, 1400), 200, "{}\n")
		first := version("grpc")
		if effective := version(""); effective != first {
			t.Errorf("the versions of one value are %s and %s", first, effective)
		}
		w.says("PUT", "/configuration?version="+first, fmt.Sprintf(mtu, 1300), 200, "{}\n")
		w.says("PUT", "/configuration?version="+first, fmt.Sprintf(mtu, 1200), 412, ifPrefix+"if1: the value has changed")
		w.says("GET", "/configuration", "", 200, "mtu: 1300\n")
		w.says("PUT", "/configuration?version="+version("grpc"), fmt.Sprintf(mtu, 1200), 200, "{}\n")
		w.says("PUT", "/configuration?datasrc=lab&version="+first, fmt.Sprintf(mtu, 1100), 412, "the value has changed")
		w.says("PUT", "/configuration?version="+first, "linuxConfig: {interfaces: [{name: a, type: DUMMY}, {name: b, type: DUMMY}]}", 400, "the document has 2 values: expected one")
		_, all := w.ask("GET", "/configuration?format=json", "")
		w.says("PUT", "/configuration", "linuxConfig: {interfaces: [{name: if2, type: DUMMY}]}", 200, "{}\n")
		if _, two := w.ask("GET", "/configuration?format=json", ""); !strings.Contains(all, "Version") || strings.Contains(two, "Version") {
			t.Errorf("one value has a version, two have none; got\n%s%s", all, two)
		}
	})
}

// TestConfiguration declares documents, reads what takes effect, and removes it.
func TestConfiguration(t *testing.T) {
	declaring(t, func(w *world) {
		w.says("GET", "/configuration", "", 200, "{}\n")
		w.says("PUT", "/configuration", "linuxConfig: {interfaces: [{name: if1, type: DUMMY}, {name: if2, type: DUMMY}]}", 200, "{}\n")
		w.says("GET", "/configuration", "", 200, "linuxConfig:\n  interfaces:\n    - name: if1\n      type: DUMMY\n    - name: if2\n")
		w.says("PUT", "/configuration?replace", "linuxConfig: {interfaces: [{name: if2, type: DUMMY, mtu: 1400}]}", 200, "{}\n")
		w.says("GET", "/configuration", "", 200, "linuxConfig:\n  interfaces:\n    - name: if2\n      type: DUMMY\n      mtu: 1400\n")
		w.says("GET", "/sources?key="+ifPrefix+"if2", "", 200, `"Source": "grpc"`)

		w.says("PUT", "/configuration?datasrc=lab", `[{"key": "`+ifPrefix+`if3", "value": {"name": "if3", "type": "DUMMY"}}]`, 200, "{}\n")
		w.says("GET", "/sources?key="+ifPrefix+"if3", "", 200, `"Source": "lab"`)
		w.says("DELETE", "/configuration?key="+ifPrefix+"if3&datasrc=lab", "", 200, "{}\n")
		w.says("DELETE", "/configuration", "linuxConfig: {interfaces: [{name: if2}]}", 200, "{}\n")
		w.says("GET", "/configuration", "", 200, "{}\n")

		w.says("PUT", "/configuration", "linuxConfig: {interfaces: [{name: if1, type: DUMMY}, {name: if2, type: DUMMY}]}", 200, "{}\n")
		w.says("DELETE", "/configuration?all=1", "", 200, "{}\n")
		w.says("GET", "/configuration", "", 200, "{}\n")
	})
}

// TestConfigurationFails declares what cannot be applied, and what cannot be read.
func TestConfigurationFails(t *testing.T) {
	declaring(t, func(w *world) {
		w.broken[ifPrefix+"if1"] = true
		w.says("PUT", "/configuration", "linuxConfig: {interfaces: [{name: if1, type: DUMMY}, {name: if2, type: DUMMY}]}", 500, `"Key": "`+ifPrefix+`if1"`)
		w.says("GET", "/configuration", "", 200, "name: if2") // all others are applied
		w.says("PUT", "/configuration?revert", "linuxConfig: {interfaces: [{name: if1, type: DUMMY}, {name: if4, type: DUMMY}]}", 500, "out of memory")
		if _, answer := w.ask("GET", "/configuration", ""); strings.Contains(answer, "if4") {
			t.Errorf("a part of what was to be all or nothing is declared: %s", answer)
		}
		for body, want := range map[string]string{
			"linuxConfig: {interfaces: [{name: if5, type: DUMY}, {name: if6}]}":            "did you mean DUMMY?",
			"linuxConfig: {interfaces: [{name: if5, type: DUMMY}, {name: if5}]}":           "the key is already in line 1",
			"linuxConfig: {interfaces: [{name: if5, type: DUMMY}, {name: if6, mtu: 1e4}]}": "line 1: config/linux/interfaces/v2/interface/if6: invalid value: mtu is 10000",
			`[{"key": "/vnf-agent/other/config/linux/l3/v2/route/a", "value": {}}]`:        "does not belong to this agent",
			`[{"key": "` + ifPrefix + `if5", "value": {"name": "if6", "type": "DUMMY"}}]`:  "if6",
			`[{"key": "config/none/v1/none/a", "value": {}}]`:                              "config/none",
			"":   "the body is empty",
			"{[": "line 1",
			"vppConfig: {interfaces: [{name: m, type: MEMIF, memif: {secret: (secret)}}]}": "expected the secret itself; this text replaces secrets in answers",
		} {
			w.says("PUT", "/configuration", body, 400, want)
		}
		if _, answer := w.ask("GET", "/configuration", ""); strings.Contains(answer, "if5") {
			t.Errorf("a part of an unreadable document is declared: %s", answer)
		}
		w.says("DELETE", "/configuration", "", 400, "the body is empty")
		w.says("DELETE", "/configuration?key=/vnf-agent/other/config/linux/l3/v2/route/a", "", 400, "does not belong to this agent")
		w.says("DELETE", "/configuration", `[{"key": "/vnf-agent/other/config/linux/l3/v2/route/a", "value": null}]`, 400, "does not belong to this agent")
		w.says("DELETE", "/configuration", "linuxConfig: {interfaces: [{type: DUMMY}]}", 400, "name")
		w.says("PUT", "/configuration?datasrc=a/b", "{}", 400, "invalid name of a data source")
		w.says("PUT", "/configuration?replace=perhaps", "{}", 400, "replace")
		w.says("PUT", "/configuration?revert=perhaps", "{}", 400, "revert")
		w.handler = Handler(Options{Scheduler: w.sched})
		w.says("PUT", "/configuration", "{}", 404, "takes no values from clients")
	})
}

// TestConfigurationHidesSecrets reads a declared secret, which only the socket shows.
func TestConfigurationHidesSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, sched: scheduler.New(scheduler.Options{})}
		_, err := scheduler.Register(w.sched, scheduler.Descriptor[*interfaces.Interface, struct{}]{
			Name: "vpp-interface", Model: models.For[*interfaces.Interface](),
			Create: func(context.Context, string, *interfaces.Interface) (struct{}, error) { return struct{}{}, nil },
			Delete: func(context.Context, string, *interfaces.Interface, struct{}) error { return nil },
		})
		w.must(err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.sched.Run(ctx) }()
		w.must(w.commit("", &interfaces.Interface{
			Name: "a", Type: interfaces.Interface_MEMIF, Link: &interfaces.Interface_Memif{Memif: &interfaces.MemifLink{Id: 1, Secret: "topsecret"}},
		}))
		for shown, want := range map[bool]string{true: "secret: topsecret", false: "secret: (secret)"} {
			w.handler = Handler(Options{Scheduler: w.sched, Secrets: shown})
			w.says("GET", "/configuration", "", 200, want)
		}
		w.handler = Handler(Options{Scheduler: w.sched})
		if _, text := w.ask("POST", "/configuration/validate", "vppConfig: {interfaces: [{name: a, type: MEMIF, mtu: 1, memif: {id: 1, secret: topsecret}}, {name: a}]}"); strings.Contains(text, "topsecret") {
			t.Errorf("an error shows %s", text)
		}
		// Neither a plan nor the validation accepts a document that PUT refuses.
		hidden := "vppConfig: {interfaces: [{name: m, type: MEMIF, memif: {secret: (secret)}}]}"
		w.says("POST", "/configuration/validate", hidden, 400, `"path": "vppConfig.interfaces[0].memif.secret"`)
		w.says("POST", "/scheduler/plan", hidden, 200, "expected the secret itself")
		cancel()
		w.must(<-ended)
	})
}

// TestTrials tries changes, and ends them by hand. Package orchestrator/trial tests their time.
func TestTrials(t *testing.T) {
	declaring(t, func(w *world) {
		const one, two = "linuxConfig: {interfaces: [{name: if1, type: DUMMY}]}", "linuxConfig: {interfaces: [{name: if1, type: DUMMY, mtu: 1400}]}"
		w.says("GET", "/configuration/trials", "", 200, "[]\n")
		w.says("PUT", "/configuration", one, 200, "{}\n")
		w.says("PUT", "/configuration?trial=60s", two, 200, "{}\n")
		w.says("GET", "/configuration/trials", "", 200, `"Source": "grpc"`)
		w.says("GET", "/configuration", "", 200, "mtu: 1400")
		w.says("PUT", "/configuration", one, 409, "the data source has a trial")
		w.says("PUT", "/configuration?trial=60s", one, 409, "the data source has a trial")
		w.says("POST", "/configuration/cancel?datasrc=other", "", 409, "the data source has no running trial: other")
		w.says("POST", "/configuration/cancel", "", 200, ifPrefix+"if1")
		if text := w.text("/configuration"); strings.Contains(text, "mtu") {
			t.Errorf("after the end: %s", text)
		}
		w.says("POST", "/configuration/confirm", "", 409, "the data source has no running trial: grpc")
		w.says("PUT", "/configuration?trial=60s&datasrc=lab", two, 200, "{}\n")
		w.says("POST", "/configuration/confirm?datasrc=lab", "", 200, `"Source": "lab"`)
		for _, most := range []string{"soon", "10ms", "48h"} {
			w.says("PUT", "/configuration?trial="+most, one, 400, "expected a duration from 1s to 24h0m0s")
		}
		w.handler = Handler(Options{Scheduler: w.sched})
		w.says("GET", "/configuration/trials", "", 404, "no values on trial")
		w.says("POST", "/configuration/confirm", "", 404, "no values on trial")
	})
}

// TestPlanAs plans another content of a source.
func TestPlanAs(t *testing.T) {
	declaring(t, func(w *world) {
		const two = "linuxConfig: {interfaces: [{name: if1, type: DUMMY}, {name: if2, type: DUMMY}]}"
		w.says("PUT", "/configuration?datasrc=lab", two, 200, "{}\n")
		w.says("POST", "/scheduler/plan?as=lab", two, 200, `"Operations": []`)
		w.says("POST", "/scheduler/plan?as=lab&format=text", "linuxConfig: {interfaces: [{name: if1, type: DUMMY}]}", 200, " DELETE:\n          - key: "+ifPrefix+"if2")
		w.says("POST", "/scheduler/plan?as=lab&format=text", "", 200, " DELETE:\n          - key: "+ifPrefix+"if1")
		w.says("POST", "/scheduler/plan?as=grpc&format=text", "linuxConfig: {interfaces: [{name: if3, type: DUMMY}]}", 200, "1. CREATE:\n          - key: "+ifPrefix+"if3")
		w.says("POST", "/scheduler/plan?as=lab", "linuxConfig:\n  interfaces:\n    - {name: if1, type: DUMMY}\n    - {name: if2, type: DUMY}\n", 200, `"Line": 4`)
		w.says("POST", "/scheduler/plan?as=lab", "linuxConfig:\n  interfaces:\n    - name: if1\n      type: DUMMY\n      mtu: many\n", 200, `"Line": 5`)
		w.says("POST", "/scheduler/plan?as=lab&add=1&format=text", "linuxConfig: {interfaces: [{name: if3, type: DUMMY}]}", 200, "1. CREATE:\n          - key: "+ifPrefix+"if3")
		w.says("POST", "/scheduler/plan?as=lab&add=1&format=text", `[{"key": "`+ifPrefix+`if1", "value": null}]`, 200, " DELETE:\n          - key: "+ifPrefix+"if1")
		w.says("POST", "/scheduler/plan?as=new&add=1", two, 200, `"Operations": []`)
		w.says("POST", "/scheduler/plan?as=new&new=1", two, 200, `"Operations": []`)
		w.says("POST", "/scheduler/plan?as=new", two, 400, "as: no such source: ")
		w.says("POST", "/scheduler/plan?add=1", two, 400, "add: expected as=SOURCE")
		w.says("POST", "/scheduler/plan?as=lab:a.yaml&add=1", two, 400, "add: expected as=SOURCE")
		w.says("POST", "/scheduler/plan?as=etcd", two, 400, `no such source: \"etcd\"; expected one of lab`)
		w.says("POST", "/scheduler/plan?as=lab:a.yaml", two, 400, `\"lab\" consists of no files`)
		w.says("POST", "/scheduler/plan?as=lab&replace=1", two, 400, "replace: not with as")
		w.says("GET", "/sources?key="+ifPrefix+"if2", "", 200, `"Source": "lab"`)
	})
}

// planned returns the plan of a text.
func (w *world) planned(query, text string) (out wire.Plan) {
	w.t.Helper()
	_, answer := w.ask("POST", "/scheduler/plan?"+query, text)
	w.must(json.Unmarshal([]byte(answer), &out))
	return out
}

// TestPlanAsWarns plans a source below another one. A warning names each value without effect, and
// each field that is ignored or read leniently.
func TestPlanAsWarns(t *testing.T) {
	declaring(t, func(w *world) {
		const one, other = "linuxConfig: {interfaces: [{name: if1, type: DUMMY}]}", "linuxConfig:\n  interfaces:\n    - {name: if1, type: DUMMY, mtu: 1400}\n"
		w.says("PUT", "/configuration?datasrc=lab", one, 200, "{}\n")
		text := "the value of lab takes effect instead"
		for _, test := range []struct {
			query, body string
			want        []wire.Warning
		}{
			{"as=zz&new=1", one, nil},
			{"as=zz&new=1", other, []wire.Warning{{Key: ifPrefix + "if1", Line: 3, Text: text, KeptBy: "lab"}}},
			{"as=zz&add=1", `[{"key": "` + ifPrefix + `if1", "value": null}]`, []wire.Warning{{Key: ifPrefix + "if1", Line: 1, Text: text, KeptBy: "lab"}}},
			{"as=aa&add=1", other, nil},
			{"as=aa&add=1", strings.ReplaceAll(other, "mtu: 1400", "enabled: yes"), []wire.Warning{{Key: ifPrefix + "if1", Line: 3, Text: "yes is taken for true"}}},
		} {
			p := w.planned(test.query, test.body)
			same := func(got, want wire.Warning) bool {
				return got.Key == want.Key && got.Line == want.Line && strings.Contains(got.Text, want.Text) && got.KeptBy == want.KeptBy
			}
			if !slices.EqualFunc(p.Warnings, test.want, same) {
				t.Errorf("%s, %s: warnings %+v; expected %+v", test.query, test.body, p.Warnings, test.want)
			}
		}
		w.says("POST", "/scheduler/plan?as=zz&new=1&format=text", other, 200, "  * warnings:\n      - line 3: "+ifPrefix+"if1: "+text+"\n")
		w.says("PUT", "/configuration?datasrc=zz", other, 200, "{}\n")
		w.says("POST", "/scheduler/plan?as=zz&format=text", "", 200, "  * warnings:\n      - "+ifPrefix+"if1: "+text+"\n")
	})
}

// TestPlanBoundsWarnings plans more values without effect than a plan names.
func TestPlanBoundsWarnings(t *testing.T) {
	declaring(t, func(w *world) {
		document := func(mtu int) string {
			var b strings.Builder
			b.WriteString("linuxConfig:\n  interfaces:\n")
			for i := range maxWarnings + 3 {
				fmt.Fprintf(&b, "    - {name: if%d, type: DUMMY, mtu: %d}\n", i, mtu)
			}
			return b.String()
		}
		w.says("PUT", "/configuration?datasrc=lab", document(1400), 200, "{}\n")
		p := w.planned("as=zz&new=1", document(1300))
		if n := len(p.Warnings); n != maxWarnings+1 || p.Warnings[maxWarnings-1].KeptBy != "lab" || p.Warnings[maxWarnings] != (wire.Warning{Text: "and 3 more warnings"}) {
			t.Errorf("%d warnings, the last one is %+v", n, p.Warnings[n-1])
		}
	})
}

// TestErrorsAreNotRepeated answers a transaction in which values fail twice, and more than an answer names.
func TestErrorsAreNotRepeated(t *testing.T) {
	busy, full := errors.New("busy"), errors.New("no space left")
	of := &scheduler.TxnError{Failed: []scheduler.KeyError{
		{Key: "a", Verb: scheduler.Delete, Err: busy}, {Key: "b", Verb: scheduler.Create, Err: busy},
		{Key: "a", Verb: scheduler.Create, Err: busy}, {Key: "a", Verb: scheduler.Create, Err: full},
	}}
	var got []string
	for _, f := range failures(of) {
		got = append(got, f.Key+": "+f.Error)
	}
	if want := []string{"a: busy", "b: busy", "a: no space left"}; !slices.Equal(got, want) {
		t.Errorf("failures %q; expected %q", got, want)
	}
	for range 2 {
		for i := range maxInvalid + 3 {
			of.Failed = append(of.Failed, scheduler.KeyError{Key: fmt.Sprint(i), Verb: scheduler.Create, Err: busy})
		}
	}
	if all := failures(of); len(all) != maxInvalid+1 || all[maxInvalid].Error != "and 6 more failed" {
		t.Errorf("%d failures, the last one is %q", len(all), all[len(all)-1].Error)
	}
}
