package wire

// A Version describes the build of an agent. Unknown fields are omitted.
type Version struct {
	App     string `json:",omitempty"`
	Version string `json:",omitempty"`
	// From the Go toolchain's build information. It is empty for a build outside of a
	// repository.
	GitCommit string `json:",omitempty"`
	GitBranch string `json:",omitempty"`
	BuildUser string `json:",omitempty"`
	BuildHost string `json:",omitempty"`
	BuildTime int64  `json:",omitempty"` // UNIX seconds
	GoVersion string `json:",omitempty"`
	// Values of GOOS and GOARCH, such as linux and amd64. OSType repeats OS for existing
	// clients.
	OS         string `json:",omitempty"`
	Arch       string `json:",omitempty"`
	APIVersion string `json:",omitempty"`
	OSType     string `json:",omitempty"`
}
