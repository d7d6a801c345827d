package floors

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// shortest is the shortest limit of a wait for something that must happen. A busy machine exceeds shorter ones.
const shortest = 10 * time.Second

// shortWaits lists the files in which a shorter limit of a context is right, with the reason. Tests in virtual time
// need no entry.
func shortWaits() map[string]string {
	ends := "the test expects that the deadline passes"
	tries := "an attempt that fails is repeated"
	return map[string]string{
		"connectors/bolt/bolt_test.go":              ends,
		"connectors/redis/faults_test.go":           ends,
		"descriptors/vpp/conn/manager_test.go":      ends,
		"descriptors/vpp/telemetry/hostile_test.go": ends,
		"northbound/grpc/configurator_test.go":      ends,
		"internal/faults/write.go":                  tries,
		"internal/siege/attack_grpc_test.go":        "an attacker leaves early",
		"internal/siege/kills_side_test.go":         tries,
		"internal/siege/soak_samples_test.go":       tries,
		"internal/siege/target_test.go":             tries,
	}
}

// Whoever waits for something that must happen uses testkit.Patience. A context in test code whose time is a short
// constant ends a test that is only slow. Short waits for each turn of a poll are not found here.
func TestWaitsAreLong(t *testing.T) {
	allowed, met := shortWaits(), map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && len(entry.Name()) > 2 {
			return cmp.Or(err, fs.SkipDir)
		}
		name := strings.TrimPrefix(path, "../../")
		inTests := slices.ContainsFunc(testCode(), func(dir string) bool { return filepath.Dir(name) == dir })
		if !strings.HasSuffix(name, "_test.go") && !(inTests && strings.HasSuffix(name, ".go")) {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		for _, at := range shortTimeouts(file) {
			if met[name] = true; allowed[name] == "" {
				t.Errorf("%s: the time of this context is below %v; use testkit.Patience, or name the reason in shortWaits()", set.Position(at), shortest)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range allowed {
		if !met[name] {
			t.Errorf("shortWaits() lists %s, which has no short wait", name)
		}
	}
}

// shortTimeouts returns the places of calls of context.WithTimeout with a short constant. In files that use virtual
// time there are none.
func shortTimeouts(file *ast.File) (places []token.Pos) {
	for _, spec := range file.Imports {
		if spec.Path.Value == `"testing/synctest"` {
			return nil
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 || !isSelector(call.Fun, "context", "WithTimeout") {
			return true
		}
		if d, ok := duration(call.Args[1]); ok && d < shortest {
			places = append(places, call.Pos())
		}
		return true
	})
	return places
}

func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == pkg
}

// duration returns the value of an expression such as time.Second or 10*time.Millisecond.
func duration(e ast.Expr) (time.Duration, bool) {
	units := map[string]time.Duration{"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}
	switch e := e.(type) {
	case *ast.SelectorExpr:
		d, ok := units[e.Sel.Name]
		return d, ok && isSelector(e, "time", e.Sel.Name)
	case *ast.BinaryExpr:
		number, ok := e.X.(*ast.BasicLit)
		unit, known := duration(e.Y)
		if !ok || !known || e.Op != token.MUL {
			return 0, false
		}
		n, exact := constant.Int64Val(constant.MakeFromLiteral(number.Value, number.Kind, 0))
		return time.Duration(n) * unit, exact
	}
	return 0, false
}

// The rule finds the contexts that it is about.
func TestShortTimeouts(t *testing.T) {
	p := parsed(t, `package p; func f() { context.WithTimeout(a, 9*time.Second); context.WithTimeout(a, time.Second); context.WithTimeout(a, 10*time.Second)
		context.WithTimeout(a, testkit.Patience); context.WithTimeout(a, time.Minute); time.After(time.Second) }`)
	if got := shortTimeouts(p.Files["p.go"]); len(got) != 2 {
		t.Errorf("%d short times, want 2", len(got))
	}
}
