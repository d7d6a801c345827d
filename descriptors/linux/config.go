package linux

// InterfacesConfig is the content of linux-ifplugin.conf.
type InterfacesConfig struct {
	// Disabled leaves out interfaces, and so all that needs them.
	Disabled bool `yaml:"disabled"`
	// Readers is how many namespaces are read at once. Defaults to 10.
	Readers int `yaml:"go-routines-count"`
}

// L3Config is the content of linux-l3plugin.conf.
type L3Config struct {
	// Disabled leaves out routes and neighbours.
	Disabled bool `yaml:"disabled"`
	// Readers is accepted for older files; namespaces with many routes are read
	// one after the other.
	Readers int `yaml:"go-routines-count"`
}

// NamespacesConfig is the content of linux-nsplugin.conf.
type NamespacesConfig struct {
	// Disabled leaves only the agent's own namespace.
	Disabled bool `yaml:"disabled"`
}
