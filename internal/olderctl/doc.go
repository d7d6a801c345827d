// Package olderctl asks a running agent what each command of the older agentctl asks: the
// same gRPC calls and HTTP requests, and the parts of the answers that it reads. It is
// tests only.
//
// testdata has the answers below /dump, with one value of each model on a simulated VPP.
//
// That program itself is not part of the tests: its binary belongs to others. The table in
// commands_test.go has one line per command.
package olderctl
