// Command walked is the agent with a pipe to its counters of coverage: it is built with `go build -cover`, by package walk.
//
// Its descriptors 3 and 4 are pipes. Each line of 3 is a command, which is answered by an empty line in 4, or by an error:
//
//	clear          the counters begin at 0
//	write FOLDER   what they count is in files of the folder
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime/coverage"
	"strings"

	"github.com/keyplane/keyplane/agent"
)

func main() {
	go serve(os.NewFile(3, "commands"), os.NewFile(4, "answers"))
	agent.Main(agent.Options{})
}

func serve(commands, answers *os.File) {
	in := bufio.NewScanner(commands)
	for in.Scan() {
		text := ""
		if err := do(in.Text()); err != nil {
			text = err.Error()
		}
		fmt.Fprintln(answers, text)
	}
}

func do(command string) error {
	if dir, ok := strings.CutPrefix(command, "write "); ok {
		return errors.Join(coverage.WriteCountersDir(dir), coverage.WriteMetaDir(dir))
	}
	return coverage.ClearCounters()
}
