package agent

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/scheduler"
)

var writeCompatibility = flag.Bool("update-compatibility", false, "write the generated part of docs/compatibility.md")

// olderPaths are the paths of vpp-agent 3.5.
const olderPaths = `GET / | GET /info/version | GET /info/configuration/jsonschema | GET /configuration | PUT /configuration | POST /configuration/validate |
GET /dump/vpp/v2/abf | GET /dump/vpp/v2/acl/ip | GET /dump/vpp/v2/acl/macip | GET /dump/vpp/v2/interfaces | GET /dump/vpp/v2/interfaces/loopback |
GET /dump/vpp/v2/interfaces/ethernet | GET /dump/vpp/v2/interfaces/memif | GET /dump/vpp/v2/interfaces/tap | GET /dump/vpp/v2/interfaces/afpacket |
GET /dump/vpp/v2/interfaces/vxlan | GET /dump/vpp/v2/nat/global | GET /dump/vpp/v2/nat/dnat | GET /dump/vpp/v2/nat/interfaces | GET /dump/vpp/v2/nat/pools |
GET /dump/vpp/v2/bd | GET /dump/vpp/v2/fib | GET /dump/vpp/v2/xc | GET /dump/vpp/v2/routes | GET /dump/vpp/v2/arps | GET /dump/vpp/v2/proxyarp/interfaces |
GET /dump/vpp/v2/proxyarp/ranges | GET /dump/vpp/v2/ipscanneigh | GET /dump/vpp/v2/vrrps | GET /dump/vpp/v2/ipsec/spds | GET /dump/vpp/v2/ipsec/sps |
GET /dump/vpp/v2/ipsec/sas | GET /dump/vpp/v2/punt/sockets | GET /dump/vpp/v2/wireguard/peers | GET /dump/linux/v2/interfaces | GET /dump/linux/v2/routes |
GET /dump/linux/v2/arps | GET /stats/linux/interfaces | GET /stats/configurator | GET /vpp/telemetry | GET /vpp/telemetry/memory | GET /vpp/telemetry/runtime |
GET /vpp/telemetry/nodecount | POST /vpp/command | GET /govppmux/stats | GET /scheduler/dump | GET /scheduler/status | GET /scheduler/txn-history |
GET /scheduler/key-timeline | GET /scheduler/graph-snapshot | GET /scheduler/flag-stats | GET /scheduler/graph | GET /scheduler/stats |
POST /scheduler/downstream-resync | GET /log/list | PUT /log/{logger}/{level} | GET /liveness | GET /readiness | GET /health | GET /metrics | GET /metrics/{model}`

// olderMetrics are the metrics of vpp-agent 3.5 that it makes itself.
const olderMetrics = `vpp_runtime_calls vpp_runtime_vectors vpp_runtime_suspends vpp_runtime_clocks vpp_runtime_vectors_per_call
vpp_memory_objects vpp_memory_used vpp_memory_total vpp_memory_free vpp_memory_size vpp_memory_pages vpp_memory_trimmable vpp_memory_free_chunks
vpp_memory_free_fastbin_blks vpp_memory_max_total_allocated vpp_buffers_size vpp_buffers_alloc vpp_buffers_free vpp_buffers_num_alloc vpp_buffers_num_free
vpp_nodes_counter vpp_interfaces_rx_packets vpp_interfaces_rx_bytes vpp_interfaces_rx_errors vpp_interfaces_tx_packets vpp_interfaces_tx_bytes
vpp_interfaces_tx_errors vpp_interfaces_drops vpp_interfaces_punts vpp_interfaces_ip4 vpp_interfaces_ip6 vpp_interfaces_rx_no_buf vpp_interfaces_rx_miss
ligato_ifplugin_operational_state ligato_ifplugin_admin_state ligato_govppmux_channels_created_total ligato_govppmux_channels
ligato_govppmux_requests_total ligato_govppmux_requests ligato_govppmux_requests_failed_total ligato_govppmux_requests_done_total
ligato_govppmux_replies_received_total ligato_govppmux_successful_request_duration_seconds ligato_kvscheduler_txn_processed ligato_kvscheduler_txn_dropped
ligato_kvscheduler_queue_capacity ligato_kvscheduler_queue_length ligato_kvscheduler_queue_wait_seconds ligato_kvscheduler_txn_process_duration_seconds
ligato_kvscheduler_txn_duration_seconds ligato_build_info ligato_process_cpu_seconds_total ligato_process_resident_memory_bytes ligato_process_start_time_seconds`

// olderFlags are the flags of vpp-agent 3.5, each of which is a variable of the environment too.
const olderFlags = `config-dir microservice-label http-port grpc-port aggregator-config configurator-config consul-config etcd-config govpp-config
grpc-config http-config initfileregistry-config kafka-config kvscheduler-config linux-ifplugin-config linux-iptablesplugin-config linux-l3plugin-config
linux-nsplugin-config logs-config msgsync-config orchestrator-config redis-config restpapi-config telemetry-config vpp-aclplugin-config
vpp-ifplugin-config vpp-ipfixplugin-config`

var generated = regexp.MustCompile(`(?s)(<!-- go test ./agent -run TestCompatibility -update-compatibility -->\n).*?(<!-- end -->)`)

// The page of differences says which flags, paths and metrics of vpp-agent 3.5 this agent has.
func TestCompatibility(t *testing.T) {
	const page = "../docs/compatibility.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	list := func(title string, all []string, has func(string) bool) {
		var kept, absent []string
		for _, one := range all {
			if has(one) {
				kept = append(kept, "`"+one+"`")
			} else {
				absent = append(absent, "`"+one+"`")
			}
		}
		if absent == nil {
			absent = []string{"none"}
		}
		out.WriteString("\n" + title + " that are kept: " + strings.Join(kept, ",\n") + ".\n\n" + title + " that are absent: " + strings.Join(absent, ",\n") + ".\n")
	}
	flags, idle := declaredFlags(t)
	older := strings.Fields(olderFlags)
	effective := slices.DeleteFunc(slices.Clone(older), func(one string) bool { return slices.Contains(idle, one) })
	list("Flags, also as variables of the environment,", effective, func(one string) bool { return flags[one] })
	out.WriteString("\nFlags that are accepted without effect: `" + strings.Join(idle, "`,\n`") + "`.\n")
	var own []string
	for name := range flags {
		if !slices.Contains(older, name) && !slices.Contains(idle, name) && !strings.EqualFold(name, "v") && name != "version" {
			own = append(own, name)
		}
	}
	slices.Sort(own)
	out.WriteString("\nFlags that vpp-agent 3.5 does not have: `" + strings.Join(own, "`,\n`") + "`.\n")
	paths := servedPaths(t)
	list("Paths of HTTP", strings.Split(strings.ReplaceAll(olderPaths, "\n", " "), " | "), func(one string) bool { return slices.Contains(paths, strings.TrimSpace(one)) })
	names := registered(t)
	list("Metrics", strings.Fields(olderMetrics), func(one string) bool { return names[one] })
	if !generated.Match(text) {
		t.Fatalf("%s has no place for the generated part", page)
	}
	want := generated.ReplaceAllString(string(text), "${1}"+out.String()+"\n${2}")
	if *writeCompatibility {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s is not up to date; it should be\n%s", page, want)
	}
}

// declaredFlags returns the flags that the agent accepts, and those of them that have no effect.
func declaredFlags(t *testing.T) (all map[string]bool, idle []string) {
	t.Helper()
	o := Options{Name: "agent"}
	s := &settings{options: o, storeFiles: map[string]*string{}}
	flags := flag.NewFlagSet(o.Name, flag.ContinueOnError)
	if err := s.declare(flags); err != nil {
		t.Fatal(err)
	}
	all = map[string]bool{}
	flags.VisitAll(func(f *flag.Flag) { all[f.Name] = true })
	return all, s.idleFlags()
}

// servedPaths returns the methods and paths of the HTTP API: "GET /drift".
func servedPaths(t *testing.T) (out []string) {
	t.Helper()
	answer := httptest.NewRecorder()
	rest.Handler(rest.Options{Scheduler: scheduler.New(scheduler.Options{})}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", nil))
	var doc struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(answer.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			out = append(out, strings.ToUpper(method)+" "+path)
		}
	}
	return out
}
