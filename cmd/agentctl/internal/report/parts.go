package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A part is a file of the archive.
type part struct {
	file, about string
	// read returns the content. It may return a part of it and an error.
	read func(ctx context.Context, r *reader) (string, error)
}

// parts returns the files, with the names that readers of such reports know.
func parts() []part {
	return []part{
		{"software-versions.txt", "versions of agentctl, the agent and VPP", versions},
		{"hardware.txt", "processors, interfaces and memory of VPP's host", lines("show cpu", "show hardware-interfaces", "show physmem")},
		{"agent-status.txt", "state of the agent and of its sources", status},
		{"agent-transaction-history.txt", "transactions", history},
		{"agent-NB-config.yaml", "declared values", document("NB")},
		{"agent-kvscheduler-NB-config-view.txt", "declared values with their keys", view("NB")},
		{"agent-kvscheduler-SB-config-view.txt", "actual values, read back", view("SB")},
		{"agent-kvscheduler-cached-config-view.txt", "actual values as the agent has recorded them", view("cached")},
		{"vpp-startup-config.txt", "command line of VPP", lines("show version cmdline")},
		{"vpp-running-config(vpp-agent-SB-dump).yaml", "actual values, read back", document("SB")},
		{"vpp-event-log.txt", "events of VPP", lines("show event-logger all")},
		{"vpp-log.txt", "log of VPP", lines("show logging")},
		{"vpp-statistics-interfaces.txt", "counters of VPP's interfaces", lines("show interface")},
		{"vpp-statistics-errors.txt", "counters of VPP's errors", lines("show errors")},
		// The messages of a trace have the keys of IPsec and WireGuard in the clear.
		{"vpp-api-trace.txt", "state of the trace of VPP's API, without its messages", lines("api trace status")},
		{"vpp-api-trace.json", "state of the trace of VPP's API, without its messages", traceJSON},
		{"vpp-other-srv6.txt", "SRv6 in VPP", lines("show sr localsids", "show sr policies", "show sr steering-policies")},
	}
}

// A reader reads from the agent. It keeps what several parts need.
type reader struct {
	s *session.Session
	// The dump of each view, read once.
	dumps map[string]*dump
}

// versions describes the builds of the programs.
func versions(ctx context.Context, r *reader) (string, error) {
	own := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		own = info.String()
	}
	agent, err := jsonText(ctx, r, "/info/version")
	vpp, vppErr := jsonText(ctx, r, "/vpp/info")
	return section("agentctl", own) + section("agent", agent) + section("VPP", vpp), errors.Join(err, vppErr)
}

// status describes the state of the agent.
func status(ctx context.Context, r *reader) (string, error) {
	var ready wire.AgentStatus
	err := r.s.Probe(ctx, "/readiness", &ready)
	text, _ := show.JSON(ready) // it was decoded from JSON
	sources, sourcesErr := jsonText(ctx, r, "/sources")
	return section("state", text) + section("sources", sources), errors.Join(err, sourcesErr)
}

// history returns the transactions, which never have secrets.
func history(ctx context.Context, r *reader) (text string, err error) {
	err = r.s.Request(ctx, http.MethodGet, "/scheduler/txn-history", url.Values{"format": {"text"}}, nil, &text)
	return text, err
}

// jsonText returns an answer of the agent, indented.
func jsonText(ctx context.Context, r *reader, path string) (string, error) {
	var answer json.RawMessage
	if err := r.s.Get(ctx, path, nil, &answer); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return show.JSON(answer)
}

// lines reads the output of lines of VPP's command line.
func lines(commands ...string) func(context.Context, *reader) (string, error) {
	return func(ctx context.Context, r *reader) (string, error) {
		var out strings.Builder
		for _, command := range commands {
			text, err := r.line(ctx, command)
			if err != nil {
				return out.String(), err
			}
			out.WriteString(section(command, text))
		}
		return out.String(), nil
	}
}

// line runs a line of VPP's command line.
func (r *reader) line(ctx context.Context, command string) (text string, err error) {
	body, err := json.Marshal(wire.Command{Line: command})
	if err != nil {
		return "", err
	}
	var answer any // a JSON text
	if err := r.s.Request(ctx, http.MethodPost, "/vpp/command", nil, body, &answer); err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	return fmt.Sprint(answer), nil
}

// traceJSON is the state of the trace for programs.
func traceJSON(ctx context.Context, r *reader) (string, error) {
	text, err := r.line(ctx, "api trace status")
	if err != nil {
		return "", err
	}
	return show.JSON(map[string]string{"status": strings.TrimSpace(text)})
}

// section returns text below a header.
func section(header, text string) string {
	return "# " + header + "\n" + strings.TrimRight(text, "\r\n") + "\n\n"
}
