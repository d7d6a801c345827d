package wire

// An Export is a document with declared values.
type Export struct {
	// Text is YAML that can be declared again. Comments at its top repeat Notes and Hidden.
	Text string
	// Notes are the declared values that are not in Text, or only as an earlier valid version.
	Notes []Invalid `json:",omitempty"`
	// Hidden are the keys of values with "(secret)" in place of a secret. They cannot be declared
	// again.
	Hidden []string `json:",omitempty"`
	// Version stands for the value if Text has a single one, with its secrets. PUT /configuration
	// takes it as a condition.
	Version string `json:",omitempty"`
}
