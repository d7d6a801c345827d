package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// FuzzKeys has one thing wait for another, come with it and leave again. What
// they are called makes no difference to what is done, and to how much is told.
func FuzzKeys(f *testing.F) {
	for _, names := range [][2]string{
		{"a", "b"}, {"a", "a/b"}, {"a/b", "a"}, {"/", "//"}, {"a", "A"}, {"..", "../thing/a"}, {" ", "\t"},
		{"\xff", "\xfe"}, {"a\nb", "a\r\n"}, {"\x00", "\u2028"}, {"\x1b[2J", "\u202e"}, {"thing/a", "part/thing/a"},
	} {
		f.Add(names[0], names[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" || a == b {
			t.Skip("not the names of two things")
		}
		got, want := taleOf(t, a, b), taleOf(t, "a", "b")
		if !slices.Equal(got, want) {
			t.Errorf("of %q and %q:\n%s\nwanted\n%s", a, b, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// taleOf tells what happens when a is declared, which needs b, then b, and then
// neither: operations by role, states, names found, and lines of text.
func taleOf(t *testing.T, a, b string) (tale []string) {
	s := scheduler.New(scheduler.Options{Concurrency: 1})
	index := needy(t, s)
	defer begin(t, s)()
	roles := map[string]string{"thing/" + a: "A", "thing/" + b: "B", "part/thing/" + a: "part of A", "part/thing/" + b: "part of B"}
	commit := func(changes ...scheduler.Change) {
		r := mustCommit(t, s, scheduler.Txn{Changes: changes})
		for _, op := range r.Executed.All() {
			tale = append(tale, fmt.Sprint(op.Verb, " ", roles[op.Key], " ", txnlog.Flags(&op)))
		}
		for _, name := range []string{a, b} {
			key := "thing/" + name
			if st, ok := s.Status(key); ok {
				tale = append(tale, fmt.Sprint(roles[key], " ", st.State))
			}
			if meta, ok := index.Get(name); ok {
				tale = append(tale, fmt.Sprint(roles[meta], " is found"))
			}
		}
		text := txnlog.Text(r, -1) + explain.Key(s, "thing/"+a).String()
		if i := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && unicode.IsControl(c) }); i >= 0 {
			t.Errorf("not for people: %q", text[i:])
		}
		tale = append(tale, fmt.Sprintf("%d statuses, %d lines", len(s.Statuses("")), strings.Count(text, "\n")))
	}
	want := func(name, needs string) scheduler.Change {
		v, err := s.Value("thing/"+name, wrapperspb.Bytes([]byte(needs)))
		must(t, err)
		return v.Change()
	}
	commit(want(a, b))
	commit(want(b, ""))
	commit(scheduler.Unwant("thing/"+b), scheduler.Unwant("thing/"+a))
	return tale
}

// needy registers values under thing/ that need the part of the one they name.
func needy(tb testing.TB, s *scheduler.Scheduler) *scheduler.Index[string] {
	type bytes = *wrapperspb.BytesValue
	index, err := scheduler.Register(s, scheduler.Descriptor[bytes, string]{
		Name: "thing", Prefix: "thing/",
		Dependencies: func(_ string, v bytes) []scheduler.Dependency {
			if len(v.Value) == 0 {
				return nil
			}
			return []scheduler.Dependency{{Label: "part", Key: "part/thing/" + string(v.Value)}}
		},
		Derived: func(key string, v bytes) []scheduler.KeyValue {
			return []scheduler.KeyValue{{Key: "part/" + key, Value: v}}
		},
		Create: func(_ context.Context, key string, _ bytes) (string, error) { return key, nil },
		Delete: func(context.Context, string, bytes, string) error { return nil },
	})
	if err != nil {
		tb.Fatal(err)
	}
	return index
}
