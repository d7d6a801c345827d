package linux

import (
	"fmt"

	"github.com/keyplane/keyplane/descriptors/linux/microservice"
)

// InterfacesConfig is the content of linux-ifplugin.conf.
type InterfacesConfig struct {
	// Disabled removes interfaces, and with them routes and neighbours.
	Disabled bool `yaml:"disabled"`
	// Readers is the number of namespaces that are read in parallel. Defaults to 10.
	Readers int `yaml:"go-routines-count"`
}

// L3Config is the content of linux-l3plugin.conf.
type L3Config struct {
	// Disabled removes routes and neighbours.
	Disabled bool `yaml:"disabled"`
	// Readers is accepted for compatibility and has no effect: namespaces with many routes
	// are read one after the other.
	Readers int `yaml:"go-routines-count"`
}

// IPTablesConfig is the content of linux-iptablesplugin.conf.
type IPTablesConfig struct {
	// Disabled removes rule chains.
	Disabled bool `yaml:"disabled"`
	// Readers is the number of namespaces that are read in parallel. Defaults to 10.
	Readers int `yaml:"go-routines-count"`
	// Handler is accepted for compatibility and has no effect: all rules of a chain are
	// always written at once.
	Handler struct {
		MinRules int `yaml:"min-rule-count-for-performance-rule-addition"`
	} `yaml:"handler"`
}

// NamespacesConfig is the content of linux-nsplugin.conf.
type NamespacesConfig struct {
	// Disabled allows only the agent's own namespace.
	Disabled bool `yaml:"disabled"`
	// Wait makes values wait for a named namespace that is missing, as for those of microservices. Otherwise the
	// agent makes it.
	Wait bool `yaml:"wait-for-namespaces"`
	// Docker is the container engine whose containers are microservices.
	Docker DockerConfig `yaml:"docker"`
}

// Validate checks the address of the container engine.
func (c NamespacesConfig) Validate() error {
	if err := microservice.CheckEngine(c.Docker.Host); err != nil {
		return fmt.Errorf("docker.host: %w", err)
	}
	return nil
}

// DockerConfig says how to reach Docker, or podman.
type DockerConfig struct {
	// Host is unix:///PATH or tcp://HOST:PORT. Defaults to DOCKER_HOST in the environment,
	// else to unix:///var/run/docker.sock.
	Host string `yaml:"host"`
}
