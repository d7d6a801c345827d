package floors

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A test draws the same cases in each run (internal/testkit/draw): a failure says that the commit is faulty, and fails
// again. make explore finds the calls by their places, directly in functions of tests.
func TestChanceHasASeed(t *testing.T) {
	found := 0
	for _, name := range filesOf(t, func(name string) bool { return strings.HasSuffix(name, ".go") }) {
		dir := path.Dir(name)
		if slices.Contains(drawsAnew(), name) || dir == "internal/testkit/draw" || !strings.HasSuffix(name, "_test.go") && !slices.Contains(testCode(), dir) {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join("../..", name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range withoutSeed(set, file) {
			t.Errorf("%s: %s", name, bad)
		}
		found += len(callsOf(file, module+"internal/testkit/draw", ""))
	}
	if found < 50 {
		t.Errorf("only %d random tests were found: did their form change?", found)
	}
}

// drawsAnew lists the files of test code that draw something else in each run, with their reasons.
func drawsAnew() []string {
	return []string{
		"internal/testkit/ports.go", // processes that run at the same time look for free ports
	}
}

// withoutSeed lists the calls that draw something else in each run, and draws that make explore does not find.
func withoutSeed(set *token.FileSet, file *ast.File) (out []string) {
	say := func(calls []call, what string) {
		for _, c := range calls {
			out = append(out, fmt.Sprintf("line %d: %s: %s", set.Position(c.Pos()).Line, c.name, what))
		}
	}
	say(slices.DeleteFunc(callsOf(file, "pgregory.net/rapid", "rapid"), func(c call) bool { return !slices.Contains([]string{"Check", "MakeCheck", "Example"}, c.name) }),
		"call draw.Check, which sets the seed")
	for _, p := range []string{"math/rand/v2", "math/rand"} {
		say(slices.DeleteFunc(callsOf(file, p, "rand"), func(c call) bool { return strings.HasPrefix(c.name, "New") && !readsClock(c) }),
			"it draws something else in each run; call rand.New with a seed that is constant or of draw.Each")
	}
	say(slices.DeleteFunc(callsOf(file, module+"internal/testkit/draw", "draw"), func(c call) bool { return strings.HasPrefix(c.in, "Test") || c.name == "Seed" }),
		"call it in a function TestX, where make explore finds it")
	return out
}

// A call is one of a function of some package.
type call struct {
	*ast.CallExpr
	name string // of the function
	in   string // the declared function around the call
}

// callsOf lists the calls of the functions of a package that a file imports, under its usual name or another one.
func callsOf(file *ast.File, imported, name string) (out []call) {
	i := slices.IndexFunc(file.Imports, func(s *ast.ImportSpec) bool { p, _ := strconv.Unquote(s.Path.Value); return p == imported })
	if i < 0 {
		return nil
	}
	if as := file.Imports[i].Name; as != nil {
		name = as.Name
	} else if name == "" {
		name = path.Base(imported)
	}
	for _, d := range file.Decls {
		f, _ := d.(*ast.FuncDecl)
		ast.Inspect(d, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun := c.Fun
			if generic, ok := fun.(*ast.IndexExpr); ok {
				fun = generic.X
			}
			if s, ok := fun.(*ast.SelectorExpr); ok && text(s.X) == name {
				one := call{c, s.Sel.Name, ""}
				if f != nil {
					one.in = f.Name.Name
				}
				out = append(out, one)
			}
			return true
		})
	}
	return out
}

// readsClock tells a seed that is made of the time.
func readsClock(c call) (reads bool) {
	for _, arg := range c.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			e, ok := n.(*ast.SelectorExpr)
			reads = reads || ok && text(e) == "time.Now"
			return true
		})
	}
	return reads
}

// The rule finds what it is about.
func TestWithoutSeed(t *testing.T) {
	tests := map[string]string{
		`rapid.Check(t, nil)`:                                 "line 2: Check: call draw.Check",
		`t.Run("a", rapid.MakeCheck(nil))`:                    "line 2: MakeCheck: call draw.Check",
		`rapid.Bool().Draw(t, "b")`:                           "",
		`rand.IntN(3)`:                                        "line 2: IntN: it draws something else",
		`rand.N[int](3)`:                                      "line 2: N: it draws something else",
		`rand.New(rand.NewPCG(1, 2)).IntN(3)`:                 "",
		`rand.New(rand.NewPCG(uint64(time.Now().Unix()), 2))`: "line 2: New: it draws something else",
		`draw.Check(t, nil)`:                                  "",
	}
	const head = `package p; import ("math/rand/v2"; "pgregory.net/rapid"; "github.com/keyplane/keyplane/internal/testkit/draw"); func %s(t *testing.T) {` + "\n%s\n}"
	parse := func(function, code string) string {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "p_test.go", fmt.Sprintf(head, function, code), 0)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(withoutSeed(set, file), "\n")
	}
	for code, want := range tests {
		if got := parse("TestX", code); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
	if got := parse("helper", `draw.Check(t, nil)`); !strings.HasPrefix(got, "line 2: Check: call it in a function TestX") {
		t.Errorf("draw.Check in a helper: %q", got)
	}
}
