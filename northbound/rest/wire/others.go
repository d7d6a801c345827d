package wire

// Nothing is the empty object that a request without a result answers.
type Nothing struct{}

// A LogLevel is the level of a logger.
type LogLevel struct {
	Logger string `json:"logger"`
	Level  string `json:"level"`
}

// A Command is the body of POST /vpp/command.
type Command struct {
	Line string `json:"vppclicommand"` // such as "show version"
}

// A ConfigError is an error in the body of POST /configuration/validate.
type ConfigError struct {
	Path        string `json:"path"` // of the field: "vppConfig.interfaces[0].mtu"
	Error       string `json:"error"`
	Part        string `json:"error_config_part,omitempty"`         // the value with the error
	DerivedPart string `json:"error_derived_config_part,omitempty"` // the derived value with the error
}
