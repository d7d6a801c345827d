// Package show has the ways in which commands of agentctl print: tables, the formats of -f,
// changes with their fields, and text from outside that is made printable.
//
//	f := show.FormatFlag(cmd, session)
//	...
//	return f.Write(session.Out, answer, func(out io.Writer) error { return table(out, answer) })
//
// It knows neither the settings nor the agent: it gets the writer, the environment and the types
// of messages. Output is built in memory first, so that a failed command prints no half.
package show
