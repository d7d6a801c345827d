package cli

// Command builds the tree of commands for tests of their help.
var Command = command
