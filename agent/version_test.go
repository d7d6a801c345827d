package agent

import (
	"encoding/json"
	"testing"
)

// Clients show the build in a form with all fields, so none is empty, whatever Go and the linker know of it.
func TestAboutHasAllFields(t *testing.T) {
	text, err := json.Marshal(about("agent"))
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]any{}
	if err := json.Unmarshal(text, &has); err != nil { // empty fields are left out
		t.Fatal(err)
	}
	for _, name := range []string{"App", "Version", "GitCommit", "GitBranch", "BuildUser", "BuildHost", "BuildTime", "GoVersion", "OS", "Arch", "OSType"} {
		if has[name] == nil {
			t.Errorf("%s is empty in %s", name, text)
		}
	}
}
