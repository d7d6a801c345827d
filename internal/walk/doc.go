// Package walk measures how much of the program one event runs: the functions, files and packages between a put and the
// kernel, for example. `make walk` writes the figures into docs/walk.md, and `.ci/run` compares them with those.
//
// The agent is built with counters of coverage (command walked). What it runs while nothing happens does not count. Of
// several runs of an event the smallest counts, because other work of the agent falls into some.
package walk
