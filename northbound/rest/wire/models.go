package wire

// A Model describes the values under one prefix of keys.
type Model struct {
	Name         string   // such as "linux.l3.route"
	Class        string   // "config", or "metrics"
	ProtoName    string   // full name of the message: "ligato.linux.l3.Route"
	ProtoFile    string   // file that declares the message: "ligato/linux/l3/route.proto"
	KeyPrefix    string   // of keys; the whole key if there is no NameTemplate
	NameTemplate string   `json:",omitempty"` // makes the rest of the key from a value (text/template); empty: the model has one value
	KeyFields    []string `json:",omitempty"` // the fields that the template reads
	ConfigField  string   `json:",omitempty"` // where the values are in a document: "linuxConfig.routes"
	Implemented  bool     // the agent has a descriptor for the values
	// Files is a google.protobuf.FileDescriptorSet with the message and all that it needs, each
	// file after its imports. Only GET /info/models/{model} has it.
	Files []byte `json:",omitempty"`
}
