package agent

import (
	"log/slog"
	"os"
	"testing"
)

// TestInitialFileOfTheCurrentDirectory starts in a folder of somebody else, which has a file of
// values. The folder of the agent's configuration has none, so nothing is declared.
func TestInitialFileOfTheCurrentDirectory(t *testing.T) {
	ours, theirs := t.TempDir(), t.TempDir()
	t.Chdir(theirs)
	const text = "linuxConfig: {interfaces: [{name: theirs, type: DUMMY}]}\n"
	if err := os.WriteFile("initial-config.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := StoreOptions{files: files{dir: ours}, Log: slog.New(slog.DiscardHandler), Load: func(any) (bool, error) { return false, nil }}
	if c, err := openInitfile(o); c != nil || err != nil {
		t.Errorf("the file of the current directory is a source: %v, %v", c, err)
	}
	o.files.dir = theirs
	if c, err := openInitfile(o); c == nil || err != nil {
		t.Errorf("the file in the folder of configuration files is no source: %v", err)
	}
}
