package kvdbsync_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

func TestFolderOf(t *testing.T) {
	known := []string{"config/", "vpp/status/", "owner"}
	for key, want := range map[string]string{
		"config/a": "", "config-status/a": "config-status/", "config": "config", "confg/linux/v2/a": "confg/",
		"vpp/status/v2/a": "", "vpp/config/v1/a": "vpp/config/", "vpp/a": "vpp/a", "vpp/statusx": "vpp/statusx",
		"owner": "", "owner/a": "owner/", "owners": "owners", "/config/a": "/", "a": "a",
	} {
		name, unknown := kvdbsync.FolderOf(key, known)
		if name != want || unknown != (want != "") {
			t.Errorf("%s: %q, %v; want %q", key, name, unknown, want)
		}
	}
}

// TestLeapAsksOncePerFolder has 1000 keys in each folder: a question for each of them, or for
// the keys of a known folder, would show in the count.
func TestLeapAsksOncePerFolder(t *testing.T) {
	var keys []string
	for _, folder := range []string{"config/", "config-status/", "confg/", "other/", "vpp/config/", "vpp/status/"} {
		for i := range 1000 {
			keys = append(keys, fmt.Sprintf("/vnf-agent/vpp1/%s%03d", folder, i))
		}
	}
	keys = append(keys, "/vnf-agent/vpp1/config", "/vnf-agent/vpp1/owner", "/vnf-agent/vpp10/x/1", "/vnf-agent/vpp/x")
	slices.Sort(keys)
	asked := 0
	names, err := kvdbsync.Leap("/vnf-agent/vpp1/", []string{"config/", "config-status/", "vpp/status/", "owner"}, func(from, to string) (string, error) {
		asked++
		at, _ := slices.BinarySearch(keys, from)
		if at == len(keys) || keys[at] >= to {
			return "", nil
		}
		if strings.Contains(keys[at], "/config/0") && !strings.Contains(keys[at], "vpp/") {
			t.Errorf("a question touched a known key: %s", keys[at])
		}
		return keys[at], nil
	})
	if want := "[confg/ config other/ vpp/config/]"; err != nil || fmt.Sprint(names) != want {
		t.Errorf("%v, %v; want %s", names, err, want)
	}
	if asked > 9 {
		t.Errorf("%d questions for 4 names and 5 ranges", asked)
	}
	if _, err := kvdbsync.Leap("/a/", nil, func(string, string) (string, error) { return "", errDown }); !errors.Is(err, errDown) {
		t.Errorf("the error is %v", err)
	}
}

func TestIgnoredKeysAreWarnedOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		var out bytes.Buffer
		m.Txn(put("/r/config/a", "1"), put("/r/confg/a", "1"), put("/r/confg/b", "1"), put("/r/status/a", "1"))
		s := run(t, kvdbsync.Options{
			Connector: &m, Browser: &m, Root: "/r/", Prefix: "config/", Known: []string{"status/"},
			Log: slog.New(slog.NewTextHandler(&out, nil)),
		})
		expect(t, s, "config/a=1 resynced")
		m.Fail(errDown)
		m.Fail(nil)
		elapse(time.Minute)
		m.Txn(put("/r/conf/a", "1"))
		s.Relist() // a later listing finds later keys
		synctest.Wait()
		for _, want := range []string{"ignored=/r/confg/ read=/r/config/", "ignored=/r/conf/ read=/r/config/"} {
			if n := strings.Count(out.String(), want); n != 1 {
				t.Errorf("%d times %q in\n%s", n, want, out.String())
			}
		}
		if n := strings.Count(out.String(), "ignored="); n != 2 {
			t.Errorf("%d warnings:\n%s", n, out.String())
		}
	})
}

// failingBrowser is a store that does not let its reader list other keys.
type failingBrowser struct{}

func (failingBrowser) Beside(context.Context, string, []string) ([]string, error) {
	return nil, errors.New("permission denied")
}

func TestAStoreMayForbidToLookBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		var out bytes.Buffer
		run(t, kvdbsync.Options{
			Connector: &m, Browser: failingBrowser{}, Root: "/r/", Prefix: "config/",
			Log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		synctest.Wait()
		if text := out.String(); !strings.Contains(text, "permission denied") || strings.Contains(text, "level=WARN") {
			t.Errorf("the log is:\n%s", text)
		}
	})
}
