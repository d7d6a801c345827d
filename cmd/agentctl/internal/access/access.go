// Package access has the command access of agentctl: the least rights with which an agent, or an
// editor of its keys, can do its work in a store.
//
// It prints commands of the store's own client for the administrator. Nothing is executed, so that
// agentctl never needs the administrator's password.
package access

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/summary"
)

// The words of --for.
const (
	forAgent  = "agent"
	forEditor = "editor"
	forBoth   = "both"
)

// rights are the keys that a user may use. All begin with the prefix of one label.
type rights struct {
	user   string
	prefix string   // all that may be read; it ends with a slash
	keys   []string // that may be read and written; one of them is outside prefix
	below  []string // prefixes below which all may be written; each ends with a slash
	// The agent owns its label and its status by a session, which ends with it.
	session bool
	node    string // of Consul, whose sessions the user may make and end; empty: none
}

// rightsOf returns the rights for one of the words of --for.
func rightsOf(label, user, word string) rights {
	r := rights{user: user, prefix: session.AllAgents + label + "/"}
	if word != forEditor {
		r.session = true
		r.keys = append(r.keys, r.prefix+"owner", summary.Key(label))
		for _, published := range []string{"config-status/", "check/status/", "vpp/status/", "status/"} {
			r.below = append(r.below, r.prefix+published)
		}
	}
	if word != forAgent {
		r.below = append(r.below, r.prefix+"config/")
	}
	return r
}

// Command returns the command that prints how to give a user the least rights.
func Command(s *session.Session) *cobra.Command {
	cmd := session.Group(&cobra.Command{
		Use:   "access",
		Short: "Prints how to give the agent the least rights in a store",
		Long: "Access prints the commands with which the administrator of a store makes a user with the least rights. It executes nothing.\n" +
			"The agent reads all keys of its label, and writes its own status, its summary and the key owner, nothing else. An editor reads them too,\n" +
			"and writes the keys below config/. An agent whose keys are edited through its socket (agentctl kvdb) needs both.",
		Example: "  agentctl access etcd --for both",
	})
	cmd.AddCommand(
		store(s, "etcd", "a role and a user of etcd", "etcdctl, with the rights of root", etcd),
		store(s, "redis", "a user of Redis 7 or newer", "redis-cli, with the rights of the administrator", redis),
		store(s, "consul", "a policy and a token of Consul", "consul, with a management token", consul),
	)
	return cmd
}

// store returns the command for one store.
func store(s *session.Session, name, makes, client string, commands func(rights) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name,
		Short:   "Prints the commands that make " + makes,
		Long:    "The commands are for " + client + ".",
		Example: "  agentctl access " + name + " --label vpp2\n  agentctl access " + name + " --for editor --user ann",
		Args:    session.ExpectArgs(),
	}
	word := show.ChoiceFlag(cmd, "for", forAgent, "the purpose of the user", forAgent, forEditor, forBoth)
	user := cmd.Flags().String("user", "", "name of the user (default: keyplane-LABEL, or keyplane-LABEL-editor)")
	given := cmd.Flags().String("label", "", "label of the agent (default: that of --service-label)")
	node := new(string)
	if name == "consul" {
		node = cmd.Flags().String("node", "", "the Consul node at which the agent makes its session, if agents of other labels make none there")
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		label, setting := s.Label, "service-label"
		if cmd.Flags().Changed("label") {
			label, setting = *given, "label"
		}
		if err := checkName(setting, label); err != nil {
			return err
		}
		if *user == "" {
			*user = "keyplane-" + label
			if word.Value == forEditor {
				*user += "-editor"
			}
		}
		if err := checkName("user", *user); err != nil {
			return err
		}
		r := rightsOf(label, *user, word.Value)
		if r.node = *node; r.node != "" {
			if err := checkName("node", r.node); err != nil {
				return err
			}
		}
		_, err := io.WriteString(s.Out, commands(r))
		return err
	}
	return cmd
}

// checkName refuses a name that a shell, a pattern of Redis or a policy of Consul would not take
// as it is.
func checkName(setting, name string) error {
	for _, c := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", c) {
			return session.Usagef("%s: %q: expected letters, digits, dots, dashes and underscores, since stores and shells give others a meaning", setting, name)
		}
	}
	if name == "" || name[0] == '-' {
		return session.Usagef("%s: %q: expected a name that does not begin with a dash", setting, name)
	}
	return nil
}

// etcd returns the commands for etcd 3.4 and newer (authentication guide of etcd).
func etcd(r rights) string {
	var b strings.Builder
	b.WriteString("# The password is in $PASSWORD; etcdctl takes none with spaces. Authentication must be enabled (etcdctl auth enable).\n")
	fmt.Fprintf(&b, "etcdctl role add %s\n", r.user)
	grant := "etcdctl role grant-permission " + r.user
	fmt.Fprintf(&b, "%s --prefix read %s\n", grant, r.prefix)
	for _, key := range r.keys {
		fmt.Fprintf(&b, "%s readwrite %s\n", grant, key)
	}
	for _, prefix := range r.below {
		fmt.Fprintf(&b, "%s --prefix readwrite %s\n", grant, prefix)
	}
	fmt.Fprintf(&b, "printf %%s \"$PASSWORD\" | etcdctl user add %s --interactive=false\n", r.user)
	fmt.Fprintf(&b, "etcdctl user grant-role %s %s\n", r.user, r.user)
	return b.String()
}

// redis returns the commands for Redis 7 and newer, whose patterns tell reading from writing
// (documentation of ACL SETUSER). The connector says which commands it uses in its README.
func redis(r rights) string {
	words := []string{
		"ACL SETUSER", r.user, "reset", "on", "resetchannels", "'%R~" + r.prefix + "*'",
	}
	for _, key := range r.keys {
		words = append(words, "'~"+key+"'")
	}
	for _, prefix := range r.below {
		words = append(words, "'~"+prefix+"*'")
	}
	words = append(words,
		"+ping", "+hello", "+info", "'+client|tracking'", "+scan", "+get", "+mget",
		"+set", "+setnx", "+del", "+pexpire", "+pttl", "+multi", "+exec", "+watch", "+unwatch",
		"'+cluster|myid'", "'+cluster|nodes'", "'+cluster|slots'", "+asking") // for a Cluster
	return "# The password is in $PASSWORD. Other users of this machine see the arguments of redis-cli, but not what it reads.\n" +
		"printf '>%s' \"$PASSWORD\" | redis-cli -x " + strings.Join(words, " ") + "\n" +
		"# Keep it: redis-cli ACL SAVE, or redis-cli CONFIG REWRITE where users are in redis.conf.\n"
}

// noSessions says why an agent gets no right to sessions in Consul, and what follows.
const noSessions = `# No right to sessions: Consul grants it for whole nodes, so an agent could end the sessions of others there. Without it
# nothing keeps a second agent of the label away, and the agent publishes no status. --node NODE gives the right for a
# node at which agents of other labels make no sessions.
`

// consul returns the commands for Consul 1.4 and newer. Rules name keys without a leading slash, and sessions by the node
// that they belong to, never by who made them (documentation of Consul's ACL rules).
func consul(r rights) string {
	var rules strings.Builder
	about := ""
	rule := func(kind, name, policy string) {
		fmt.Fprintf(&rules, "%s \"%s\" { policy = \"%s\" }\n", kind, strings.TrimPrefix(name, "/"), policy)
	}
	rule("key_prefix", r.prefix, "read")
	for _, key := range r.keys {
		rule("key", key, "write")
	}
	for _, prefix := range r.below {
		rule("key_prefix", prefix, "write")
	}
	switch {
	case r.session && r.node != "":
		rule("session", r.node, "write")
	case r.session:
		about = noSessions
	}
	return about + "consul acl policy create -name " + r.user + " -rules - <<'RULES'\n" + rules.String() + "RULES\n" +
		"consul acl token create -description " + r.user + " -policy-name " + r.user + "\n"
}
