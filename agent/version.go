package agent

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// unknown stands for what a build does not tell.
const unknown = "unknown"

// The linker sets these (go build -ldflags=-X); Go itself does not record them.
var buildBranch, buildUser, buildHost = unknown, unknown, unknown

// version describes this build: the output of `agent -V`.
func version(program string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return program + ", of unknown version"
	}
	return describeBuild(program, info)
}

// about returns the version for programs.
func about(program string) wire.Version {
	out := wire.Version{
		App: program, Version: unknown, GoVersion: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, OSType: runtime.GOOS,
		GitCommit: unknown, GitBranch: buildBranch, BuildUser: buildUser, BuildHost: buildHost,
		BuildTime: fileTime(),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	out.Version = cmp.Or(info.Main.Version, out.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			out.GitCommit = s.Value
		case "vcs.time":
			if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
				out.BuildTime = t.Unix()
			}
		}
	}
	return out
}

// fileTime returns the time of the program's file, in seconds since 1970, for builds that Go stamps with no time of a
// commit; 0: it is unknown.
func fileTime() int64 {
	path, err := os.Executable()
	if err != nil {
		return 0
	}
	file, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return file.ModTime().Unix()
}

// describeBuild describes the binary by the information that the Go toolchain puts into
// it.
func describeBuild(program string, info *debug.BuildInfo) string {
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	revision := cmp.Or(set["vcs.revision"], "unknown")
	if set["vcs.modified"] == "true" {
		revision += " with changes"
	}
	return fmt.Sprintf("%s %s\nrevision %s\ncommitted %s\nbuilt with %s for %s/%s",
		program, info.Main.Version, revision, cmp.Or(set["vcs.time"], "unknown"), info.GoVersion, set["GOOS"], set["GOARCH"])
}
