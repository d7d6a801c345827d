// Package proto holds the messages of keyplane as .proto files and, next to
// each, the Go that is generated from it. Message, field and enum names and all
// numbers are those of Ligato, and never change: stores, clients and programs in
// other languages rely on them. README.md says how to use them.
//
// Tested against the table of the wire in models/testdata.
package proto

//go:generate go -C ../tools run ./protogen ../proto
