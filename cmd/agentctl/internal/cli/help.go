package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// usage is the help of a command below its description. It names the flags of all commands only
// where they are defined, at the root: 14 more flags below each command hide its own.
const usage = `Usage:{{if and .Runnable (not (index .Annotations %q))}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .Aliases}}

Aliases:
  {{.NameAndAliases}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped %d | trimTrailingWhitespaces}}{{end}}
{{if .HasAvailableSubCommands}}
Help for a command: {{.CommandPath}} COMMAND -h{{end}}{{if .HasAvailableInheritedFlags}}
Flags of all commands: {{.Root.Name}} options{{end}}
`

// widestHelp is the largest width of the help, in columns. Longer lines are hard to read.
const widestHelp = 120

// addHelp gives root its help, and the commands that need neither settings nor an agent: those
// about agentctl itself.
func addHelp(root *cobra.Command, s *session.Session) {
	columns, _ := show.Size(s.Out)
	columns = min(columns, widestHelp)
	root.SetUsageTemplate(fmt.Sprintf(usage, session.IsGroup, columns))
	printHelp := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = show.Fill(cmd.Long, columns)
		printHelp(cmd, args)
	})
	root.AddCommand(options(s), man(), completion())
	refuseUnknownTopics(root)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for name, complete := range map[string]cobra.CompletionFunc{
		"config":               names.CompleteFile,
		"http-basic-auth-file": names.CompleteFile,
		"socket":               names.CompleteFile,
		"config-dir": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		"store": func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return s.CompleteStore(cmd), cobra.ShellCompDirectiveNoFileComp
		},
	} {
		_ = root.RegisterFlagCompletionFunc(name, complete) // fails only without the flag
	}
}

// refuseUnknownTopics makes the command help fail for a command that does not exist. That of cobra prints
// the help of root then, and ends with the exit code 0.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil || help == root {
		return
	}
	help.Run, help.RunE = nil, func(_ *cobra.Command, args []string) error {
		found, rest, err := root.Find(args)
		if err == nil && len(rest) > 0 && found.HasSubCommands() {
			err = session.UnknownCommand(found, rest[0])
		}
		if err != nil {
			return session.Usagef("%w", err)
		}
		return found.Help()
	}
}

// aboutItself reports whether a command needs no settings. An invalid configuration file must
// not stop a shell from completing, or hide the help that would tell how to mend it.
func aboutItself(cmd *cobra.Command) bool {
	if _, group := cmd.Annotations[session.IsGroup]; group {
		return true
	}
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		switch cmd.Name() {
		case "completion", "help", "man", "options", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return true
		}
	}
	return false
}

// options returns the command that prints the flags of all commands.
func options(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Short:   "Prints the flags of all commands",
		Long:    "Options prints the flags that all commands have, and the environment variables that replace them.",
		Example: "  agentctl options",
		Args:    session.ExpectArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			columns, _ := show.Size(s.Out)
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "Flags of all commands:\n%s", cmd.InheritedFlags().FlagUsagesWrapped(min(columns, widestHelp)))
			return err
		},
	}
}

// man returns the command that writes manual pages. It is for packages, not for users, who have
// the help.
func man() *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Writes the manual pages",
		Long:    "Man writes a manual page for each command into FOLDER, which must exist. Their date is that in SOURCE_DATE_EPOCH, or today.",
		Example: "  agentctl man /usr/local/share/man/man1",
		Args:    session.ExpectArgs("FOLDER"),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true // a date in each page would make each build differ
			escapeMarkdown(root)
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "keyplane " + root.Version, Manual: "Keyplane"}, args[0])
		},
	}
}

// escapeMarkdown makes the descriptions of cmd and of the commands below it plain text for
// package doc, which reads them as Markdown: the * of a pattern, or a list of symbols.
func escapeMarkdown(cmd *cobra.Command) {
	escape := strings.NewReplacer("*", `\*`, "_", `\_`, "`", "\\`", "<", `\<`, "#", `\#`, "\n+ ", "\n\\+ ", "\n- ", "\n\\- ")
	cmd.Short, cmd.Long = escape.Replace(cmd.Short), escape.Replace(cmd.Long)
	for _, sub := range cmd.Commands() {
		escapeMarkdown(sub)
	}
}

// completion returns the command that prints the script of a shell.
func completion() *cobra.Command {
	write := map[string]func(cmd *cobra.Command) error{
		"bash":       bashCompletion,
		"fish":       func(cmd *cobra.Command) error { return cmd.Root().GenFishCompletion(cmd.OutOrStdout(), true) },
		"powershell": func(cmd *cobra.Command) error { return cmd.Root().GenPowerShellCompletionWithDesc(cmd.OutOrStdout()) },
		"zsh":        func(cmd *cobra.Command) error { return cmd.Root().GenZshCompletion(cmd.OutOrStdout()) },
	}
	shells := []string{"bash", "fish", "powershell", "zsh"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Prints a script that completes command lines in a shell",
		Long: "Completion prints a script for the SHELL bash, zsh, fish or powershell. With it, the key Tab completes commands and flags, and\n" +
			"names of the agent: values, models, loggers, stores and keys. A shell waits at most 1 s for the agent.\n" +
			"In bash, the first Tab completes as far as the words agree, and the next two list those that are left.",
		Example: "  source <(agentctl completion bash)\n" +
			"  agentctl completion bash > /etc/bash_completion.d/agentctl\n" +
			"  agentctl completion zsh > \"${fpath[1]}/_agentctl\"\n" +
			"  agentctl completion fish > ~/.config/fish/completions/agentctl.fish\n" +
			"  agentctl completion powershell | Out-String | Invoke-Expression",
		Args:      session.ExpectArgs("SHELL"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, known := write[args[0]]
			if !known {
				return session.Usagef("shell %q: expected one of %s", args[0], strings.Join(shells, ", "))
			}
			return f(cmd)
		},
	}
}

// withoutPackage replaces a function of the script for bash where the package bash-completion is not
// loaded, as in a small container. It gives the words of the line up to the cursor, split at spaces: a
// colon or an equals sign does not end a word, since keys have them.
const withoutPackage = `
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    __agentctl_init_completion()
    {
        COMPREPLY=()
        local line=${COMP_LINE:0:COMP_POINT}
        read -ra words <<<"$line"
        [[ $line == *[[:space:]] ]] && words+=("")
        cword=$((${#words[@]} - 1))
        cur=${words[cword]} prev=${words[cword > 0 ? cword - 1 : 0]}
    }
fi
`

// bashCompletion prints the script for bash.
func bashCompletion(cmd *cobra.Command) error {
	if err := cmd.Root().GenBashCompletionV2(cmd.OutOrStdout(), true); err != nil {
		return err
	}
	_, err := io.WriteString(cmd.OutOrStdout(), withoutPackage)
	return err
}
