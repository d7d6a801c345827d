// Package proto holds the messages of keyplane as .proto files and, next to
// each, the Go that is generated from it. Message, field and enum names and all
// numbers are those of Ligato, and never change: stores, clients and programs in
// other languages rely on them. README.md says how to use them.
//
// Tested: the Go is that of the .proto files, and the messages are those of the
// wire, which models/testdata lists.
package proto

//go:generate go -C ../tools run ./protogen ../proto
