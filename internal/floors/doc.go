// Package floors holds the shape of the house: which folder may import which,
// no init, no mutable package variable, no package that is too large, a README for every connector and
// descriptor. It is tests only, and reads the source of the whole module.
//
// An import goes down a floor or stays within its own folder, never up or
// sideways; the table in imports_test.go says it folder by folder.
package floors
