package proto

import "embed"

// Sources has the .proto files of this folder, by their import paths ("ligato/linux/l3/route.proto").
// The generated Go has no comments, and descriptions of models show them.
//
//go:embed ligato/*.proto ligato/*/*.proto ligato/*/*/*.proto
var Sources embed.FS
