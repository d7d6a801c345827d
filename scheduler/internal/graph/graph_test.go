package graph

import (
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

var update = flag.Bool("update", false, "write what the stories show into their files")

// kind is that of the stories' values: "text[,dep=key][,any=prefix][,derive=key:text][,recreate][,beside][,last][,claim=what][,yield=what]".
// The fields of a derived one's text are separated by semicolons. Values that differ in case
// only are equivalent.
// What is only derived does not tell values apart. Keys that begin with "alone" are read back by
// themselves; those that begin with "note" have no verbs, and those that begin with "property" are properties.
type kind struct {
	known    *Knowledge
	evidence value.Evidence
}

func (kind) Equivalent(_ string, old, new any) bool {
	return strings.EqualFold(itself(old.(string)), itself(new.(string)))
}

// itself is a text without what it derives.
func itself(text string) string {
	return strings.Join(slices.DeleteFunc(fields(text), func(f string) bool { return strings.HasPrefix(f, "derive=") }), ",")
}

func (kind) Recreate(_ string, _, new, _ any) bool {
	return slices.Contains(fields(new.(string)), "recreate")
}

func (k kind) Knowledge() *Knowledge { return k.known }

func (k kind) Evidence() value.Evidence { return k.evidence }

func (kind) Order(_ string, data any) value.Order {
	switch text := fields(data.(string)); {
	case slices.Contains(text, "beside"):
		return value.MakeFirst
	case slices.Contains(text, "last"):
		return value.CreateLast
	}
	return value.BreakFirst
}

func fields(s string) []string { return strings.Split(s, ",") }

// remote is that of the keys that begin with "gated", and second that of those with "second". Each story has its
// own, with one kind each.
var (
	remote, second           = &Connection{}, &Connection{}
	remoteKnown, secondKnown = &Knowledge{}, &Knowledge{}
)

// lines are the connections of the random model's keys: of even and of odd groups, with their
// derived keys. Each group is a kind. Each graph has its own: see newModel.
var (
	lines       = [2]*Connection{{}, {}}
	groupsKnown [groups]*Knowledge
)

// groupOf is the group of a key of the random model; it is negative if the key is of none.
func groupOf(key string) int {
	group, ok := strings.CutPrefix(strings.TrimPrefix(key, "d/"), "g")
	if !ok || group == "" || group[0] < '0' || group[0] > '9' {
		return -1
	}
	return int(group[0] - '0')
}

// lineOf is the connection of a key of the random model; nil: it is of no group.
func lineOf(key string) *Connection {
	if group := groupOf(key); group >= 0 {
		return lines[group%2]
	}
	return nil
}

// newLines makes the connections of a random model.
func newLines(g *Graph) {
	lines = [2]*Connection{{}, {}}
	for i := range groupsKnown {
		groupsKnown[i] = &Knowledge{}
		g.Join(lines[i%2], groupsKnown[i])
	}
}

// keyKinds are the kinds of the keys of the stories and of the random model.
type keyKinds struct{}

func (keyKinds) KindOf(key string) Kind { return made(key, "").Kind }

func (keyKinds) KindsUnder(prefix string) iter.Seq[Kind] {
	return func(yield func(Kind) bool) { yield(made(prefix, "").Kind) }
}

func made(key, text string) *Value {
	v := &Value{Key: key, Data: text, Kind: kind{}}
	if group := groupOf(key); group >= 0 && groupsKnown[group] != nil {
		v.Kind = kind{known: groupsKnown[group]}
	}
	switch {
	case strings.HasPrefix(key, "gated"):
		v.Kind = kind{known: remoteKnown}
	case strings.HasPrefix(key, "second"):
		v.Kind = kind{known: secondKnown}
	case strings.HasPrefix(key, "alone"):
		v.Kind = kind{evidence: value.ReadAlone}
	case strings.HasPrefix(key, "property"):
		v.Kind = nil
	case strings.HasPrefix(key, "note"):
		v.Kind = kind{evidence: value.FollowsBase}
	}
	for _, f := range fields(text) {
		name, arg, _ := strings.Cut(f, "=")
		switch name {
		case "dep":
			v.Deps = append(v.Deps, value.Dep{Label: arg, Key: arg})
		case "any":
			v.Deps = append(v.Deps, value.Dep{Label: arg + "*", Any: &value.AnyOf{Prefixes: strings.Split(arg, "|")}})
		case "derive":
			k, t, _ := strings.Cut(arg, ":")
			v.SetDerived(append(v.Derived(), made(k, strings.ReplaceAll(t, ";", ","))))
		case "claim", "yield":
			v.SetClaims(claimed(v.Claims(), name, arg))
		case "invalid":
			v.SetErr(errors.New("invalid"))
		}
	}
	return v
}

func claimed(all []value.Claim, name, of string) *[]value.Claim {
	all = append(all, value.Claim{
		Resource: of, Yields: name == "yield",
	})
	return &all
}

// A story is a graph, driven by text.
type story struct {
	g      *Graph
	broken map[string]bool
	renews map[string][]string // what its next Creates find of no use, by key
	out    strings.Builder
}

// run executes all that can run, up to width operations at once, and says so.
func (s *story) run(width int) {
	var flight []Op
	for {
		for len(flight) < width {
			op, ok := s.g.Next()
			if !ok {
				break
			}
			flight = append(flight, op)
		}
		if len(flight) == 0 {
			return
		}
		op := flight[0]
		flight = flight[1:]
		s.finish(op)
	}
}

// plan says what run would do after a change, which may be none.
func (s *story) plan(change string) {
	s.g.BeginPlan(nil)
	s.line(change)
	broken := s.broken
	s.broken = nil
	s.run(1)
	s.broken = broken
	s.g.Rollback()
}

func (s *story) finish(op Op) {
	key := op.Node.Key()
	if used := s.renews[key]; len(used) > 0 && op.Verb == value.Create {
		s.renews[key] = used[1:]
		fmt.Fprintf(&s.out, "  create %s ! needs another %s\n", key, used[0])
		s.g.Done(op, nil, &value.Renewal{Key: used[0], Err: errors.New("used")})
		return
	}
	if s.broken[key] {
		fmt.Fprintf(&s.out, "  %s %s !\n", strings.ToLower(op.Verb.String()), key)
		s.g.Done(op, nil, errors.New("broken"))
		return
	}
	fmt.Fprintf(&s.out, "  %s %s\n", strings.ToLower(op.Verb.String()), key)
	s.g.Done(op, nil, nil)
}

var stateNames = [...]string{"nonexistent", "configured", "pending", "missing", "discovered", "obtained", "failed", "rejected"}

func (s *story) show() {
	for range s.g.Touched() {
	}
	byKey := func(a, b *Node) int { return strings.Compare(a.key, b.key) }
	for _, n := range slices.SortedFunc(s.g.nodes.All(), byKey) {
		if n.State() == Nonexistent {
			continue
		}
		fmt.Fprintf(&s.out, "  %s %s", n.key, stateNames[n.State()])
		for _, d := range n.Unmet() {
			fmt.Fprintf(&s.out, " -%s", d.Label)
		}
		if err := n.Err(); err != nil {
			fmt.Fprintf(&s.out, " (%s)", strings.ReplaceAll(err.Error(), "\n", ", "))
		}
		s.out.WriteByte('\n')
	}
}

// changed names what has changed since it was last asked for or shown.
func (s *story) changed() {
	for n := range s.g.Touched() {
		fmt.Fprintf(&s.out, "  %s %s\n", n.key, stateNames[n.State()])
	}
}

func (s *story) line(line string) {
	f := strings.Fields(line)
	if len(f) == 0 || f[0] == "#" {
		return
	}
	remote, remoteKnown := remote, remoteKnown
	if f[0] == "second" { // a command for that connection
		remote, remoteKnown, f = second, secondKnown, f[1:]
	}
	switch f[0] {
	case "want":
		s.g.Want(made(f[1], f[2]))
	case "unwant":
		s.g.Unwant(f[1])
	case "reject":
		s.g.Reject(f[1], errors.New(f[2]))
	case "found", "foreign":
		s.g.Found(made(f[1], f[2]), nil, f[0] == "foreign")
	case "lost":
		s.g.Lost(f[1])
	case "not-found":
		s.g.NotFound(f[1])
	case "complete":
		s.g.Complete()
	case "retry":
		s.g.Retry(f[1])
	case "break":
		s.broken[f[1]] = true
	case "used":
		s.renews[f[1]] = append(s.renews[f[1]], f[2])
	case "mend":
		delete(s.broken, f[1])
		s.g.Retry(f[1])
	case "shut":
		s.g.Disconnect(remote, f[1])
	case "forget":
		s.g.Forget(remote)
	case "open":
		s.g.BeginRead(remote)
	case "emptied": // it is read back, and nothing is found
		s.g.BeginRead(remote)
		for _, n := range s.g.nodesOf(remote) {
			s.g.NotFound(n.key)
		}
		s.g.Known(kind{known: remoteKnown})
		s.g.EndRead(remote)
	case "known":
		s.g.Known(kind{known: remoteKnown})
	case "unread":
		s.g.Unread(kind{known: remoteKnown}, f[1])
	case "end-read":
		s.g.EndRead(remote)
	case "plan":
		s.plan(strings.TrimPrefix(line, "plan"))
	case "begin":
		s.g.Track()
	case "undo":
		s.g.Undo()
	case "run":
		s.run(1)
	case "run-wide":
		s.run(8)
	case "show":
		s.show()
	case "changed":
		s.changed()
	default:
		panic("unknown command " + line)
	}
}

func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			remote, remoteKnown, second, secondKnown = &Connection{}, &Knowledge{}, &Connection{}, &Knowledge{}
			s := &story{g: New(), broken: map[string]bool{}, renews: map[string][]string{}}
			s.g.Join(remote, remoteKnown)
			s.g.Join(second, secondKnown)
			s.g.Keys = keyKinds{}
			for line := range strings.Lines(string(want)) {
				if strings.HasPrefix(line, "  ") {
					continue // what was shown
				}
				s.out.WriteString(line)
				s.line(line)
			}
			got := s.out.String()
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(want) {
				t.Errorf("got:\n%s", got)
			}
		})
	}
}
