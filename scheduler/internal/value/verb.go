package value

// A Verb is the effect of an operation on its key.
type Verb uint8

const (
	None Verb = iota
	Create
	Update
	Delete
)

// String is the word that logs and tests use.
func (v Verb) String() string {
	return [...]string{"NONE", "CREATE", "UPDATE", "DELETE"}[v]
}
