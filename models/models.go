// Package models says what a value is: under which key it lives, which name
// tells it from its like, which message it is, and how it reads as JSON.
package models

import "google.golang.org/protobuf/proto"

// A Model is one sort of item, such as linux.l3.route.
type Model struct {
	Class, Module, Version, Type string
}

// Of is a Model whose values are known to be of type V.
type Of[V proto.Message] struct{ *Model }

// For returns the model of message type V. It panics where there is none.
func For[V proto.Message]() Of[V] { return Of[V]{} }

// Name is module and type: "linux.l3.route".
func (m *Model) Name() string { return m.Module + "." + m.Type }

// Prefix is what the keys of the model begin with: "config/linux/l3/v2/route/".
// The one key of a singleton is its prefix, without a trailing slash.
func (m *Model) Prefix() string { return "" }

// Singleton tells that there is one value of the model, and that it has no name.
func (m *Model) Singleton() bool { return false }

// KeyOf returns the key of the value with the given name.
func (m *Model) KeyOf(name string) string { return "" }

// NameOf returns the name in key, and whether key is of this model.
func (m *Model) NameOf(key string) (string, bool) { return "", false }

// Key returns the key that the content of v makes.
func (m *Model) Key(v proto.Message) (string, error) { return "", nil }
