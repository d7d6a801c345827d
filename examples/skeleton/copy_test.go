package skeleton

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of the README make a copy that compiles, and whose tests pass. Other tests see nothing of the copy:
// only the compiler is told of it. Its name is as long as this one's, so that the generated code needs no generator.
func TestCopy(t *testing.T) {
	const name = "policers"
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "\n    sed -i s/skeleton/mine/g examples/mine/*\n") {
		t.Error("the README has another command for the names in the copy")
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	folder, overlay := t.TempDir(), map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if file == "copy_test.go" {
			continue
		}
		there, err := filepath.Abs(filepath.Join("..", name, file))
		if err != nil {
			t.Fatal(err)
		}
		overlay[there] = filepath.Join(folder, file)
		if err := os.WriteFile(overlay[there], bytes.ReplaceAll(text, []byte("skeleton"), []byte(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, name+".test")
	// The folder does not exist, so nothing can run in it.
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o", program, "../"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tests := exec.Command(program, "-test.run=^TestDescriptor$")
	tests.Dir = folder
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
