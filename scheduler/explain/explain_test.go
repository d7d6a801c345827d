package explain_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
)

// A value waits for a part that nobody can declare. The explanation goes on to the value with which the part comes.
func TestGoesOnToTheDeclaredValue(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	parts := func(_ string, v text) (out []scheduler.KeyValue) {
		for name := range strings.FieldsSeq(v.Value) {
			out = append(out, scheduler.KeyValue{Key: "part/b1/" + name, Value: &emptypb.Empty{}})
		}
		return out
	}
	origin := func(key string) string {
		if rest, ok := strings.CutPrefix(key, "part/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			return "bridge/" + name
		}
		return ""
	}
	needs := func(_ string, v text) []scheduler.Dependency {
		if prefix, ok := strings.CutSuffix(v.Value, "*"); ok {
			return []scheduler.Dependency{{Label: "any", Prefixes: []string{prefix}}}
		}
		var all []scheduler.Dependency
		for key := range strings.SplitSeq(v.Value, " ") {
			all = append(all, scheduler.Dependency{Label: "one", Key: key})
		}
		return all
	}
	for _, d := range []scheduler.Descriptor[text, struct{}]{
		{Name: "bridge", Prefix: "bridge/", Create: create, Delete: remove, Derived: parts, Origin: origin, Properties: []string{"part/"}},
		{Name: "entry", Prefix: "entry/", Create: create, Delete: remove, Dependencies: needs},
	} {
		if _, err := scheduler.Register(s, d); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	var txn scheduler.Txn
	for key, value := range map[string]string{
		"bridge/b1": "eth1", "entry/known": "part/b1/eth2", "entry/misspelt": "part/b2/eth1", "entry/any": "part/b3/*",
		"entry/both": "part/b2/eth1 part/b2/eth2",
	} {
		v, err := s.Value(key, wrapperspb.String(value))
		if err != nil {
			t.Fatal(err)
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	if _, err := s.Commit(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"entry/known": `entry/known is PENDING
  one: part/b1/eth2 comes with bridge/b1
    bridge/b1 is CONFIGURED, without part/b1/eth2; the nearest that it has: part/b1/eth1
`,
		"entry/misspelt": `entry/misspelt is PENDING
  one: part/b2/eth1 comes with bridge/b2
    bridge/b2, which nobody declares; the nearest that is declared: bridge/b1
`,
		"entry/any": `entry/any is PENDING
  any: needs any value under part/b3/*, and there is none
    bridge/b3, which nobody declares; the nearest that is declared: bridge/b1
`,
	} {
		if got := explain.Key(s, key).String(); got != want {
			t.Errorf("it is\n%swant\n%s", got, want)
		}
	}
	root := explain.Roots(s, []string{"entry/known"}, 1)["entry/known"][0]
	if want := "bridge/b1 is CONFIGURED, without part/b1/eth2"; root.Key != "bridge/b1" || root.Text != want {
		t.Errorf("the root is %s: %s; want the value that somebody can change: %s", root.Key, root.Text, want)
	}
	if roots := explain.Roots(s, []string{"entry/both"}, 3)["entry/both"]; len(roots) != 1 || roots[0].Text != "bridge/b2, which nobody declares" {
		t.Errorf("two dependencies with one cause have the roots %+v", roots)
	}
}
