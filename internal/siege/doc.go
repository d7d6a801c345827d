// Package siege attacks running agents from all sides at once, and measures what a user of
// them notices. It has only tests:
//
//	make siege                                        # 30 minutes, with the bound of the latency
//	go test ./internal/siege                          # 20 s, as a part of make test
//	go test ./internal/siege -args -siege.only=http   # the attacks whose name matches
//
// TestSoak is the slow counterpart: `make soak-agent` runs one agent for hours under mild
// faults, and checks that it takes no more memory, goroutines and descriptors with time.
//
// TestKills kills VPP, the agent and the store at random moments, while a mixed configuration
// changes: nothing is left behind, and nothing is lost. descriptors/vpp/README.md has the command.
//
// There are two battlefields. On the first, the agent follows real stores, and the attackers
// write bad values, bad files and bad requests. On the second, the stores and the VPP that the
// agent connects to are hostile themselves. Each agent also has a source that no attacker can
// reach. The [referee], a process of its own, changes good keys there all the time, and reads the time until each
// change is in the kernel. It fails the test if a good value is lost, changed or removed, if
// the agent ends, or if the agent takes more memory than it may.
//
// An [attack] is a name and a function, and each family of attacks has a file. An attack that
// could not strike at all fails the test, so none of them can fall asleep unnoticed.
package siege
