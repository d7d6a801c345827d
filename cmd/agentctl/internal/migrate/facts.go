package migrate

import "strings"

// A verdict says what becomes of a setting or a value.
type verdict string

const (
	same    verdict = "same"    // it works as before
	changed verdict = "changed" // it works, but differently
	ignored verdict = "ignored" // it has no effect
	stops   verdict = "stops"   // the agent does not start
	refused verdict = "refused" // the agent runs without the value
)

// A fact is the verdict on a setting, with the reason unless it is same.
type fact struct {
	verdict verdict
	why     string
}

// restorable returns the fact, of which -compat makes one that works as before.
func restorable(v verdict, why string) fact { return fact{v, why + restores} }

// restores ends the reasons of facts that -compat changes.
const restores = " (-compat=" + older + " is as before)"

// settings are the keys of one configuration file. Nested keys have their parents: tls.enabled.
type settings map[string]fact

// of returns the settings that work as before, whose names are the words of a text.
func of(names string) settings {
	out := settings{}
	for name := range strings.FieldsSeq(names) {
		out[name] = fact{same, ""}
	}
	return out
}

// but adds settings for which the fact holds.
func (s settings) but(v verdict, why, names string) settings {
	for name := range strings.FieldsSeq(names) {
		s[name] = fact{v, why}
	}
	return s
}

// Reasons that several settings share.
const (
	needsNames = "the agent replaces only the variables that expand-env-names in etcd.conf lists, and does not start without that list"
	relists    = "the agent starts without its stores, and lists a store anew whenever it was lost"
	narrower   = "everybody who reached HTTP could send any line of VPP's command line; an endpoint does not open it: it is for users with admin, and those with vppCommand may look"
	bounded    = "the history is bounded by number and bytes"
	levels     = "`agentctl log set NAME debug` changes a level while the agent runs"
	batched    = "namespaces and rules are handled together"
	ignoredToo = "vpp-agent 3.5 ignored this key, too"
)

// configFiles returns the configuration files of vpp-agent 3.5 with their settings, and those that the agent has added. A file
// that is nil has no effect as a whole.
func configFiles() map[string]settings {
	out := olderFiles()
	for name, keys := range added() {
		out[name].but(changed, "vpp-agent 3.5 has no such key; the agent uses it", keys)
	}
	return out
}

// added returns the keys that vpp-agent 3.5 did not have, by file.
func added() map[string]string {
	return map[string]string{
		"consul.conf": "datacenter namespace partition token token-file cert-file key-file ca-file tls-server-name insecure-skip-tls-verify operation-timeout " +
			"probe-interval wait-time allow-stale",
		"etcd.conf":             "username password password-file expand-env-names",
		"filedb.conf":           "grace vanish-grace rescan-interval poll-interval follow-links max-files max-entries max-depth max-file-size max-yaml-size max-yaml-nodes max-total-size",
		"grpc.conf":             "disabled max-connections unauthenticated",
		"agent.conf":            "compat",
		"http.conf":             "allow-unauthenticated unauthenticated allowed-hosts max-connections max-body-bytes health-endpoint",
		"initfileregistry.conf": "writer-timeout",
		"kvscheduler.conf": "print-txn-operations print-txn-limit concurrency operation-timeout history-count history-bytes retry-period retry-max-period " +
			"retry-count resync-period drift-period",
		"linux-nsplugin.conf": "docker wait-for-namespaces",
		"logs.conf":           "format",
		"orchestrator.conf": "priorities datasrc-priorities max-datasrc volatile-datasrc anti-entropy start-patience grace-time grace-percent grace-keys " +
			"max-value-size max-page-size max-listing-size max-keys state-dir publish-status publish-status-rate publish-health publish-summary publish-summary-period",
		"redis.conf": "username password-file sentinel-username sentinel-password max-redirects",
	}
}

// olderFiles returns the configuration files of vpp-agent 3.5 with its own settings.
func olderFiles() map[string]settings {
	return map[string]settings{
		"etcd.conf": of("endpoints dial-timeout operation-timeout insecure-transport insecure-skip-tls-verify cert-file key-file ca-file auto-compact session-ttl").
			but(changed, "only variables that expand-env-names lists are replaced", "expand-env-variables").
			but(ignored, relists, "resync-after-reconnect allow-delayed-start reconnect-interval"),
		"redis.conf": of("endpoint endpoints master-name db password dial-timeout read-timeout write-timeout enable-query-on-slave max-rediects route-by-latency "+
			"pool pool.max-connections pool.busy-timeout pool.idle-timeout tls tls.enabled tls.skip-verify tls.cert-file tls.key-file tls.ca-file").
			but(ignored, "idle connections are closed by idle-timeout", "pool.idle-check-frequency"),
		"consul.conf": of("address").but(ignored, relists, "resync-after-reconnect"),
		"bolt.conf": of("db-path filter-duplicate-notifications").
			but(changed, `octal digits in quotes, such as "0600"`, "file-mode").
			but(changed, "0 is the default, 5s, and not for ever", "lock-timeout"),
		"filedb.conf": of("configuration-paths status-path"),
		"govpp.conf": of("binapi-socket-path stats-socket-path health-check-probe-interval health-check-reply-timeout retry-connect-timeout proxy-enabled").
			but(ignored, "VPP's state is read back after each reconnect", "resync-after-reconnect").
			but(ignored, "a request has no limit while VPP answers, so it is not repeated", "reply-timeout retry-request-count retry-request-timeout").
			but(ignored, "the agent reconnects for ever", "retry-connect-count").
			but(ignored, "a VPP that has not answered one probe is given up, and looked for anew", "health-check-threshold").
			but(ignored, "the agent reaches VPP by its socket, which all releases that it works with have", "connect-via-shm shm-prefix").
			but(ignored, "agentctl metrics get govppmux.stats counts the requests", "trace-enabled"),
		"kvscheduler.conf": of("enable-txn-simulation print-txn-summary").
			but(ignored, bounded, "record-transaction-history transaction-history-age-limit permanently-recorded-init-period"),
		"http.conf": of("disabled readtimeout readheadertimeout writetimeout idletimeout maxheaderbytes server-cert-file server-key-file client-basic-auth endpoint "+
			"client-cert-files enable-token-auth token-expiration users password-hash-cost rate-limiter rate-limiter.limit rate-limiter.burst").
			but(changed, "it has at least 32 bytes", "sign-key").
			but(ignored, ignoredToo, "disable read-timeout read-header-timeout write-timeout idle-timeout max-header-bytes token-signature"),
		"grpc.conf":                 of("endpoint network permission force-socket-removal max-msg-size max-concurrent-streams insecure-transport cert-file key-file ca-files extended-logging prometheus-metrics"),
		"logs.conf":                 of("default-level loggers").but(ignored, "the service manager passes the log on", "hooks"),
		"telemetry.conf":            of("polling-interval disabled prometheus-disabled skipped"),
		"vpp-ifplugin.conf":         of("mtu status-publishers"),
		"linux-ifplugin.conf":       of("disabled go-routines-count"),
		"linux-l3plugin.conf":       of("disabled").but(ignored, batched, "go-routines-count"),
		"linux-iptablesplugin.conf": of("disabled go-routines-count").but(ignored, batched, "handler"),
		"linux-nsplugin.conf":       of("disabled"),
		"orchestrator.conf":         of(""),
		"agent.conf":                of(""),
		"initfileregistry.conf":     of("disable-initial-configuration initial-configuration-file-path"),
		"kafka.conf":                nil, "msgsync.conf": nil, "aggregator.conf": nil, "configurator.conf": nil, "restpapi.conf": nil,
		"vpp-aclplugin.conf": nil, "vpp-ipfixplugin.conf": nil, "supervisor.conf": nil, "process-manager.conf": nil,
	}
}

// flags returns the flags of vpp-agent 3.5.
func flags() settings {
	return of("config-dir microservice-label http-port consul-config etcd-config govpp-config grpc-config http-config initfileregistry-config "+
		"kvscheduler-config linux-ifplugin-config linux-iptablesplugin-config linux-l3plugin-config linux-nsplugin-config logs-config "+
		"orchestrator-config redis-config telemetry-config vpp-ifplugin-config").
		but(changed, "vpp-agent 3.5 has no such flag; the agent uses it", "compat agent-config").
		but(changed, "it is the port of gRPC now; it had no effect", "grpc-port").
		but(ignored, "the agent has no such part", "aggregator-config configurator-config kafka-config msgsync-config restpapi-config vpp-aclplugin-config vpp-ipfixplugin-config").
		but(ignored, "the agent starts without VPP and stores, and waits for them", "start-timeout")
}

// environment returns the variables of vpp-agent 3.5 that are no flags; those of a common prefix are in variables.
func environment() settings {
	return of("STOP_TIMEOUT INITIAL_LOGLVL ENABLE_STATUS_PUBLISHING ETCD_ENDPOINTS ETCDV3_ENDPOINTS DOCKER_HOST CONSUL_HTTP_ADDR").
		but(stops, needsNames, "ETCD_EXPAND_ENV_VARS").
		but(ignored, "the agent waits for no store", "RESYNC_TIMEOUT").
		but(ignored, "secrets stay out of the log", "NOREDACT").
		but(ignored, "telemetry.conf and vpp-ifplugin.conf say what is read and published", "DISABLE_INTERFACE_STATS DISABLE_STATUS_PUBLISHING VPP_STATUS_PUBLISHERS").
		but(ignored, "the agent reaches VPP by its sockets only", "GOVPPMUX_NOSOCK GOVPPMUX_OLDSTATS_DISABLED").
		but(ignored, levels, "DUMP_STACK_ON_TIMEOUT NSPLUGIN_CHECK_NS_CTX KVSCHEDULER_GRAPHDUMP")
}
