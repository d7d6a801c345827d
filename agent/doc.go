// Package agent is the agent as a library: it reads the declared network of this host from
// stores, plans the operations, and executes them. Main is the standard program, cmd/agent;
// another program can import this package. `agent -h` is for operators.
//
// serve, in agent.go, creates all parts, connects them, and runs them. Each part is a task;
// tasks.go says in which order they stop. Other files read flags and configuration files
// (flags.go, settings.go, config.go, files.go) or create one kind of part (stores.go,
// ownership.go, state.go).
package agent
