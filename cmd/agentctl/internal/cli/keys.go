package cli

import "strings"

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
