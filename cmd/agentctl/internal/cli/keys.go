package cli

import (
	"strings"

	"github.com/keyplane/keyplane/models"
)

// allAgents is what the keys of every agent begin with.
const allAgents = "/vnf-agent/"

// wholeKey completes a short key, "config/...", with the agent's label.
func wholeKey(key, label string) string {
	if strings.HasPrefix(key, allAgents) {
		return key
	}
	return allAgents + label + "/" + strings.TrimPrefix(key, "/")
}

// wholePrefix completes a short prefix, "vpp1/config/...": it begins with a label.
func wholePrefix(prefix string) string {
	if strings.HasPrefix(prefix, allAgents) {
		return prefix
	}
	return allAgents + strings.TrimPrefix(prefix, "/")
}

// check tells why value is none for key.
func check(key string, value []byte) error {
	_, short, _ := strings.Cut(strings.TrimPrefix(key, allAgents), "/")
	_, err := models.Decode(short, value)
	return err
}
