package main

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// version says which build this is: what `agent -V` prints.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "agent, of unknown version"
	}
	return describeBuild(info)
}

func describeBuild(info *debug.BuildInfo) string {
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	revision := cmp.Or(set["vcs.revision"], "unknown")
	if set["vcs.modified"] == "true" {
		revision += " with changes"
	}
	return fmt.Sprintf("agent %s\nrevision %s\ncommitted %s\nbuilt with %s for %s/%s",
		info.Main.Version, revision, cmp.Or(set["vcs.time"], "unknown"), info.GoVersion, set["GOOS"], set["GOARCH"])
}
