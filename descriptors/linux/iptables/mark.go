package iptables

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/iptables/internal/ruletext"
)

// The first rule of each chain of the agent matches every packet, does nothing, and has a
// comment: the mark. It is all that the agent needs after a restart.
//
//	/vnf-agent/<label>/<name> #<installation> declared=<digest> rules=<n> [kernel=<digest>] [in=<chain>] [policy=<p> was=<p>]
//
//	declared   fingerprint of the rules as they were declared
//	rules      their number
//	kernel     fingerprint of the rules as the kernel shows them; see seal.go
//	in         the built-in chain that jumps to this one
//	policy     the policy that the agent has given the built-in chain, and the one it had
//
// The jump in the built-in chain has the beginning of the mark as its comment, up to the name.

// maxComment is the length of the longest comment: XT_MAX_COMMENT_LEN without the final zero.
const maxComment = 255

// agentMark begins the comments, and the aliases of links.
const agentMark = "/vnf-agent/"

// A mark is the content of a comment. An empty field is left out of the comment. Digests have
// the form of digest.
type mark struct {
	label, name  string
	installation string
	declared     string
	rules        int
	kernel       string
	in           string
	policy, was  string
}

// owner returns the part of the mark that says whose it is. Escaped it has no blank and needs
// no quotes.
func owner(label, name string) string {
	return agentMark + url.QueryEscape(label) + "/" + url.QueryEscape(name)
}

// String is the comment.
func (m mark) String() string {
	var b strings.Builder
	b.WriteString(kernel.JoinAlias(owner(m.label, m.name), m.installation))
	add := func(key, value string) {
		if value != "" {
			b.WriteString(" " + key + "=" + value)
		}
	}
	add("declared", m.declared)
	add("rules", strconv.Itoa(m.rules))
	add("kernel", m.kernel)
	add("in", m.in)
	add("policy", m.policy)
	add("was", m.was)
	return b.String()
}

// parseMark parses a comment. It returns false for one of another program. Unknown fields are
// skipped, so that an older agent can read the marks of a newer one.
func parseMark(comment string) (m mark, ok bool) {
	rest, ours := strings.CutPrefix(comment, agentMark)
	fields := strings.Fields(rest)
	if !ours || len(fields) == 0 {
		return mark{}, false
	}
	label, name, _ := strings.Cut(fields[0], "/")
	var errLabel, errName error
	m.label, errLabel = url.QueryUnescape(label)
	m.name, errName = url.QueryUnescape(name)
	for _, field := range fields[1:] {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "declared":
			m.declared = value
		case "rules":
			m.rules, _ = strconv.Atoi(value) // another number than the chain's: it is read as changed
		case "kernel":
			m.kernel = value
		case "in":
			m.in = value
		case "policy":
			m.policy = value
		case "was":
			m.was = value
		default:
			if id, ok := strings.CutPrefix(key, "#"); ok {
				m.installation = id
			}
		}
	}
	return m, errLabel == nil && errName == nil && m.name != ""
}

// commented returns the words of a match that does nothing but carry a comment.
func commented(comment string) []string { return []string{"-m", "comment", "--comment", comment} }

// commentOf returns the comment of a rule and its other words. ok: it has one. Only a comment
// at the beginning counts: the agent writes it there, and iptables-save keeps the order of
// matches.
func commentOf(rule string) (comment string, rest []string, ok bool) {
	all, err := ruletext.Split(rule)
	if err != nil || len(all) < 4 || all[0] != "-m" || all[1] != "comment" || all[2] != "--comment" {
		return "", nil, false
	}
	return all[3], all[4:], true
}
