package proto

import (
	"os/exec"
	"testing"
)

func TestGeneratedCodeIsThatOfTheSources(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "-C", "../tools", "run", "./protogen", "-check", "../proto")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
