package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// userShell returns the shell that exec starts without a command: that of the user, or the
// first that exists here.
func userShell() string {
	for _, name := range []string{os.Getenv("SHELL"), "bash"} {
		if _, err := exec.LookPath(name); err == nil {
			return name
		}
	}
	return "sh"
}

// withPrompt makes an interactive shell show the namespace in its prompt. Other commands are
// returned unchanged.
//
// Most shells take the prompt of the environment. bash takes it from its start file, which
// overrides the environment on many systems. So bash gets a start file in memory, which reads
// the user's first. The file descriptor stays open across exec; no file is left anywhere.
func withPrompt(namespace string, command, env []string) (_, newEnv []string, err error) {
	if len(command) > 1 {
		return command, env, nil
	}
	switch filepath.Base(command[0]) {
	case "bash":
		start := "[ -f ~/.bashrc ] && . ~/.bashrc\nPS1='(" + namespace + ") '\"$PS1\"\n"
		path, err := inMemory("first-light prompt", start)
		return []string{command[0], "--rcfile", path, "-i"}, env, err
	case "sh", "dash", "ash", "ksh", "mksh", "zsh":
		return command, append(env, "PS1=("+namespace+") "+cmp.Or(os.Getenv("PS1"), "# ")), nil
	}
	return command, env, nil
}

// inMemory returns the path of a new file with the text, for this process and its children.
func inMemory(name, text string) (path string, err error) {
	fd, err := unix.MemfdCreate(name, 0) // without MFD_CLOEXEC: the shell reads it after exec
	if err != nil {
		return "", fmt.Errorf("start file of the shell: %w", err)
	}
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		return "", fmt.Errorf("start file of the shell: %w", err)
	}
	return fmt.Sprintf("/dev/fd/%d", fd), nil
}
