// Agent configures the network of this host from keys and values: it reads them from
// stores, plans the operations, and executes them. Package agent connects all parts;
// `agent -h` is for operators.
package main

import "github.com/keyplane/keyplane/agent"

func main() { agent.Main(agent.Options{}) }
