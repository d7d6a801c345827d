package container

import (
	"os"
	"strings"
	"testing"
)

// The image of the lab has the programs that make image builds. No container runs here: one needs namespaces of its own.
func TestLabHasThePrograms(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	lab, err := os.ReadFile("Dockerfile.lab")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(makefile), "./cmd/... ./examples/first-light\n\t$(BUILDER) build") {
		t.Error("make image builds other programs")
	}
	for _, program := range []string{"agent", "agentctl", "vppsim", "first-light"} {
		if !strings.Contains(string(lab), "linux-${TARGETARCH}/"+program+" ") {
			t.Errorf("Dockerfile.lab does not copy %s", program)
		}
	}
}
