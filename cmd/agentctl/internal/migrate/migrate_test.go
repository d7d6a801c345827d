package migrate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/files"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// A setting that keeps its meaning is one that the sample of the file documents.
func TestSettingsThatStayAreInTheSamples(t *testing.T) {
	for name, known := range configFiles() {
		if known == nil {
			continue
		}
		sample, err := os.ReadFile(filepath.Join("../../../../conf", name))
		if err != nil {
			t.Error(err)
			continue
		}
		for setting, f := range known {
			last := setting[strings.LastIndex(setting, ".")+1:]
			if f.verdict != ignored && !strings.Contains(string(sample), last) {
				t.Errorf("conf/%s does not document %s, which is %s", name, setting, f.verdict)
			}
			if f.verdict != same && f.why == "" {
				t.Errorf("%s: %s is %s without a reason", name, setting, f.verdict)
			}
		}
	}
}

// The table has each key of the samples: also those of the agent alone, which people add as they migrate.
func TestKeysOfTheSamplesAreKnown(t *testing.T) {
	found, err := newStart().inFolder("../../../../conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Verdict == string(stops) || strings.Contains(f.Why, "ignored this key") {
			t.Errorf("%+v", f)
		}
	}
	if len(found) < 150 {
		t.Errorf("only %d keys were found", len(found))
	}
}

// verdicts returns the findings without reasons, one on each line.
func verdicts(all []Finding) string {
	var out strings.Builder
	for _, f := range all {
		out.WriteString(strings.Join(strings.Fields(f.Place+" "+f.What+" "+f.Verdict), " ") + "\n")
	}
	return out.String()
}

// folder returns a folder with files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newStart() *start { return &start{given: map[string]string{}} }

func TestVerdicts(t *testing.T) {
	dir := folder(t, map[string]string{
		"etcd.conf":             "endpoints: [a:1]\nresync-after-reconnect: true\nendpints: [b:1]\nfruit: 1\n",
		"http.conf":             "endpoint: 0.0.0.0:9191\nsign-key: secret\nrate-limiter: {limit: 1}\nread-timeout: 1s\n",
		"grpc.conf":             "endpoint: 127.0.0.1:9111\n",
		"govpp.conf":            "",
		"kafka.conf":            "addrs: [c:1]\n",
		"initfileregistry.conf": "initial-configuration-file-path: first.yaml\n",
		"supervisor.conf":       "programs:\n- {name: agent, executable-path: /bin/vpp-agent, executable-args: [--config-dir=/x, -kafka-config, k.conf, -what]}\n- {executable-path: /bin/vpp, executable-args: [-c]}\n",
		"redis.conf":            "- list\n",
		"restpapi.conf":         "",
		"own.conf":              "a: 1\n",
		"README":                "no configuration file",
	})
	found, err := newStart().inFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = `etcd.conf:1 endpoints same
etcd.conf:2 resync-after-reconnect ignored
etcd.conf:3 endpints ignored
etcd.conf:4 fruit ignored
govpp.conf same
govpp.conf proxy-enabled changed
grpc.conf:1 endpoint same
http.conf:1 endpoint same
http.conf:2 sign-key same
http.conf:3 rate-limiter.limit same
http.conf:4 read-timeout ignored
http.conf POST /vpp/command changed
initfileregistry.conf:1 initial-configuration-file-path changed
kafka.conf ignored
own.conf ignored
redis.conf:1 stops
restpapi.conf ignored
supervisor.conf ignored
supervisor.conf -config-dir same
supervisor.conf -kafka-config ignored
supervisor.conf -what stops
`
	if got := verdicts(found); got != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
	for _, f := range found {
		if f.Place == "restpapi.conf" && f.Why != "the agent has no such part" {
			t.Errorf("%+v", f)
		}
	}
	if !worst(found) {
		t.Error("nothing stops the agent")
	}
	if _, err := newStart().inFolder(t.TempDir()); err == nil {
		t.Error("an empty folder is no error")
	}
}

// What other keys of the file say decides about the addresses of servers and about tokens.
func TestServers(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"http without an address":    {"http.conf", "idletimeout: 1s", "http.conf:1 idletimeout same\nhttp.conf endpoint changed\n"},
		"http off":                   {"http.conf", "disabled: true", "http.conf:1 disabled same\n"},
		"http with users":            {"http.conf", "endpoint: :80\nclient-basic-auth: [a:b]", "http.conf:1 endpoint same\nhttp.conf:2 client-basic-auth same\n"},
		"http without users":         {"http.conf", "endpoint: :80\nclient-basic-auth: []", "http.conf:1 endpoint same\nhttp.conf:2 client-basic-auth same\nhttp.conf POST /vpp/command changed\n"},
		"tokens by default":          {"http.conf", "endpoint: :80\nenable-token-auth: true", "http.conf:1 endpoint same\nhttp.conf:2 enable-token-auth same\nhttp.conf POST /vpp/command changed\nhttp.conf sign-key stops\nhttp.conf users stops\n"},
		"tokens":                     {"http.conf", "enable-token-auth: true\nsign-key: secret\nusers: []\nendpoint: localhost:1", "http.conf:1 enable-token-auth same\nhttp.conf:2 sign-key stops\nhttp.conf:3 users same\nhttp.conf:4 endpoint same\nhttp.conf POST /vpp/command changed\nhttp.conf users stops\n"},
		"http as before":             {"http.conf", "endpoint: :80\nallow-unauthenticated: true", "http.conf:1 endpoint same\nhttp.conf:2 allow-unauthenticated changed\nhttp.conf POST /vpp/command changed\n"},
		"grpc without an address":    {"grpc.conf", "network: tcp", "grpc.conf:1 network same\ngrpc.conf endpoint changed\n"},
		"grpc without certificates":  {"grpc.conf", "endpoint: 0.0.0.0:9111\ncert-file: c\nkey-file: k", "grpc.conf:1 endpoint same\ngrpc.conf:2 cert-file same\ngrpc.conf:3 key-file same\n"},
		"grpc with certificates":     {"grpc.conf", "endpoint: 0.0.0.0:9111\ncert-file: c\nkey-file: k\nca-files: [a]", "grpc.conf:1 endpoint same\ngrpc.conf:2 cert-file same\ngrpc.conf:3 key-file same\ngrpc.conf:4 ca-files same\n"},
		"grpc as before":             {"grpc.conf", "endpoint: 0.0.0.0:9111\ninsecure-transport: true", "grpc.conf:1 endpoint same\ngrpc.conf:2 insecure-transport same\n"},
		"http, users without logins": {"http.conf", "endpoint: localhost:1\nusers: [{name: a}]", "http.conf:1 endpoint same\nhttp.conf:2 users ignored\nhttp.conf POST /vpp/command changed\n"},
		"http, no users":             {"http.conf", "endpoint: localhost:1\nusers: []", "http.conf:1 endpoint same\nhttp.conf:2 users same\nhttp.conf POST /vpp/command changed\n"},
		"grpc on a socket":           {"grpc.conf", "endpoint: run/grpc.sock\nnetwork: unix", "grpc.conf:1 endpoint same\ngrpc.conf:2 network same\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdictsIn(t, c.file, c.text); got != c.want {
				t.Errorf("got\n%s\nexpected\n%s", got, c.want)
			}
		})
	}
}

// verdictsIn returns the verdicts about one file, beside others that change nothing.
func verdictsIn(t *testing.T, name, text string) string {
	t.Helper()
	files := map[string]string{"govpp.conf": "proxy-enabled: false\n", "http.conf": "disabled: true\n"}
	files[name] = text
	found, err := newStart().inFolder(folder(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return verdicts(slices.DeleteFunc(found, func(f Finding) bool { return !strings.HasPrefix(f.Place, name) }))
}

// Without files, the agent differs in some defaults.
func TestMissingFiles(t *testing.T) {
	found, err := newStart().inFolder(folder(t, map[string]string{"etcd.conf": ""}))
	const want = "etcd.conf same\ngovpp.conf (missing) proxy-enabled changed\nhttp.conf (missing) endpoint changed\n"
	if got := verdicts(found); err != nil || got != want {
		t.Errorf("got\n%s%v\nexpected\n%s", got, err, want)
	}
}

// The values of the start are in a file beside the others, or where initfileregistry.conf says.
func TestValuesOfTheStart(t *testing.T) {
	const values = "linuxConfig:\n  interfaces:\n    - {name: a, type: LOOPBACK}\n    - {name: b, type: LOOPBACK, mtu: 5}\n    - {name: c, type: LOPBACK}\n"
	const found = "FILE:3 config/linux/interfaces/v2/interface/a same\nFILE:4 config/linux/interfaces/v2/interface/b refused\nFILE:5:17 config/linux/interfaces/v2/interface/c refused\n"
	elsewhere := filepath.Join(folder(t, map[string]string{"first.yaml": values}), "first.yaml")
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"the usual name": {map[string]string{"initial-config.yaml": values}, strings.ReplaceAll(found, "FILE", "initial-config.yaml")},
		"another name": {map[string]string{"initfileregistry.conf": "initial-configuration-file-path: mine.yaml\n", "mine.yaml": values},
			"initfileregistry.conf:1 initial-configuration-file-path changed\n" + strings.ReplaceAll(found, "FILE", "mine.yaml")},
		"another folder": {map[string]string{"initfileregistry.conf": "initial-configuration-file-path: " + elsewhere + "\n"},
			"initfileregistry.conf:1 initial-configuration-file-path same\n" + strings.ReplaceAll(found, "FILE", "first.yaml")},
		"off": {map[string]string{"initfileregistry.conf": "disable-initial-configuration: true\n", "initial-config.yaml": values},
			"initfileregistry.conf:1 disable-initial-configuration same\n"},
		"no YAML": {map[string]string{"initial-config.yaml": "linuxConfig: [\n"}, "initial-config.yaml stops\n"},
		"missing": {map[string]string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.files["govpp.conf"], c.files["http.conf"] = "proxy-enabled: false\n", "disabled: true\n"
			all, err := newStart().inFolder(folder(t, c.files))
			if err != nil {
				t.Fatal(err)
			}
			all = slices.DeleteFunc(all, func(f Finding) bool { return strings.HasPrefix(f.Place, "govpp") || strings.HasPrefix(f.Place, "http") })
			if got := verdicts(all); got != c.want {
				t.Errorf("got\n%s\nexpected\n%s", got, c.want)
			}
		})
	}
	s := newStart()
	if err := s.file(elsewhere); err != nil || verdicts(s.findings) != strings.ReplaceAll(found, "FILE", "first.yaml") {
		t.Errorf("named by itself: %v\n%s", err, verdicts(s.findings))
	}
}

// Each key of govpp.conf without effect has its own reason.
func TestReasonsOfGovpp(t *testing.T) {
	for key, want := range map[string]string{
		"resync-after-reconnect": "read back", "reply-timeout": "no limit", "retry-connect-count": "reconnects for ever", "connect-via-shm": "socket",
		"health-check-threshold": "one probe", "trace-enabled": "counts the requests",
	} {
		if f := configFiles()["govpp.conf"][key]; f.verdict != ignored || !strings.Contains(f.why, want) {
			t.Errorf("%s is %s: %s; expected a reason with %q", key, f.verdict, f.why, want)
		}
	}
}

// With -compat, or with agent.conf, the older defaults hold, and mistakes are ignored as before.
func TestCompat(t *testing.T) {
	files := map[string]string{"etcd.conf": "endpints: [a:1]\n", "grpc.conf": "network: tcp\n", "http.conf": "enable-token-auth: true\nsign-key: short\n"}
	const want = "etcd.conf:1 endpints ignored\ngrpc.conf:1 network same\ngrpc.conf endpoint same\nhttp.conf:1 enable-token-auth same\n" +
		"http.conf:2 sign-key same\nhttp.conf endpoint same\nhttp.conf users same\ngovpp.conf (missing) proxy-enabled same\n"
	byFlag := newStart()
	byFlag.commandLine("flags", []string{"-compat=vpp-agent-3.5"})
	found, err := byFlag.inFolder(folder(t, files))
	if got := verdicts(found); err != nil || got != want {
		t.Errorf("with the flag\n%s%v\nexpected\n%s", got, err, want)
	}
	files["agent.conf"] = "compat: vpp-agent-3.5\n"
	found, err = newStart().inFolder(folder(t, files))
	if got := verdicts(found); err != nil || got != "agent.conf:1 compat changed\n"+want {
		t.Errorf("with the file\n%s%v\nexpected\n%s", got, err, want)
	}
}

// Flags and variables name configuration files: those are read under their usual names.
func TestFilesThatFlagsName(t *testing.T) {
	dir := folder(t, map[string]string{
		"etcd.conf":       "endpints: [b:1]\n", // not read
		"prod.yaml":       "endpoints: [a:1]\n",
		"vpp":             "proxy-enabled: true\n",
		"http.conf":       "disabled: true\n",
		"supervisor.conf": "programs:\n- {executable-path: vpp-agent, executable-args: [-govpp-config, /opt/vpp]}\n",
	})
	started := newStart()
	started.commandLine("flags", []string{"-etcd-config=/opt/prod.yaml"})
	found, err := started.inFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = "etcd.conf ignored\nhttp.conf:1 disabled same\nprod.yaml:1 endpoints same\nsupervisor.conf ignored\nvpp:1 proxy-enabled same\nsupervisor.conf -govpp-config same\n"
	if got := verdicts(found); got != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
}

// Variables of an environment file are those of flags, of the agent itself, or of other programs.
func TestVariables(t *testing.T) {
	dir := folder(t, map[string]string{
		"agent.env": "# of the agent\nMICROSERVICE_LABEL=a\nexport KAFKA_CONFIG=k\n\nDEBUG_INFRA=1\nKVSCHED_VERIFY_MODE=1\nETCD_EXPAND_ENV_VARS=1\nPATH=/bin\nNOREDACT\nGRPC_PORT=1\nSTOP_TIMEOUT = 7s\n",
	})
	s := newStart()
	if err := s.environmentFile(filepath.Join(dir, "agent.env"), files.Read); err != nil {
		t.Fatal(err)
	}
	const want = `agent.env:2 MICROSERVICE_LABEL same
agent.env:3 KAFKA_CONFIG ignored
agent.env:5 DEBUG_INFRA ignored
agent.env:6 KVSCHED_VERIFY_MODE ignored
agent.env:7 ETCD_EXPAND_ENV_VARS stops
agent.env:10 GRPC_PORT changed
agent.env:11 STOP_TIMEOUT same
`
	if got := verdicts(s.findings); got != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
	if err := s.environmentFile(filepath.Join(dir, "missing"), files.Read); err == nil {
		t.Error("a missing file is no error")
	}
}

// How the older agent was started is in a unit of systemd, or in a file of Compose or Kubernetes.
func TestStarts(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"unit": {"vpp-agent.service", `[Service]
Environment="MICROSERVICE_LABEL=edge 1" ETCD_ENDPOINTS=10.0.0.1:2379
EnvironmentFile=-/missing/file
EnvironmentFile=DIR/agent.env
ExecStart=-/usr/bin/vpp-agent -config-dir /etc/vpp-agent \
  --kafka-config='kafka prod.conf' -http-port=9192
ExecStop=/bin/kill -TERM $MAINPID
`, `vpp-agent.service:2 MICROSERVICE_LABEL same
vpp-agent.service:2 ETCD_ENDPOINTS same
agent.env:1 NOREDACT ignored
vpp-agent.service:5 -config-dir same
vpp-agent.service:5 -kafka-config ignored
vpp-agent.service:5 -http-port same
`},
		"docker run": {"agent.service", `ExecStart=/usr/bin/docker run --rm --name vpp-agent -e MICROSERVICE_LABEL=a --env=START_TIMEOUT=5s --env ETCD_ENDPOINTS=b:1 -v /run/vpp:/run/vpp ligato/vpp-agent
`, "agent.service:1 MICROSERVICE_LABEL same\nagent.service:1 START_TIMEOUT ignored\nagent.service:1 ETCD_ENDPOINTS same\n"},
		"Compose": {"docker-compose.yml", `services:
  etcd: {image: etcd, environment: {ETCD_NAME: e}, command: [etcd, -a]}
  agent:
    image: ligato/vpp-agent:v3.5.0
    env_file: [agent.env]
    environment:
    - MICROSERVICE_LABEL=vpp1
    - KAFKA_CONFIG
  second:
    environment: {DEBUG_INFRA: lifecycle}
    command: vpp-agent -start-timeout=5s
`, `agent.env:1 NOREDACT ignored
docker-compose.yml:7 MICROSERVICE_LABEL same
docker-compose.yml:8 KAFKA_CONFIG ignored
docker-compose.yml:10 DEBUG_INFRA ignored
docker-compose.yml:11 -start-timeout ignored
`},
		"Kubernetes": {"agent.yaml", `kind: ConfigMap
---
kind: DaemonSet
spec: {template: {spec: {containers: [
  {name: agent, command: [/usr/bin/vpp-agent, -grpc-port=1], env: [
    {name: ETCDV3_ENDPOINTS, value: "a:1"},
    {name: MICROSERVICE_LABEL, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}]}}}
`, "agent.yaml:5 -grpc-port changed\nagent.yaml:6 ETCDV3_ENDPOINTS same\nagent.yaml:7 MICROSERVICE_LABEL same\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"agent.env": "NOREDACT=1\n"})
			path := filepath.Join(dir, c.file)
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(c.text, "DIR", dir)), 0o600); err != nil {
				t.Fatal(err)
			}
			s := newStart()
			if err := s.file(path); err != nil {
				t.Fatal(err)
			}
			if got := verdicts(s.findings); got != c.want {
				t.Errorf("got\n%s\nexpected\n%s", got, c.want)
			}
		})
	}
	for file, text := range map[string]string{
		"a.service": "EnvironmentFile=/missing/file\n", "b.yaml": "env_file: missing\n", "c.yaml": "services: {a: {image: b}}\n", "d.yml": "a: [\n",
	} {
		path := filepath.Join(folder(t, map[string]string{file: text}), file)
		if err := newStart().file(path); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v; expected an error that names the file", file, err)
		}
	}
	if err := newStart().file("missing.yaml"); err == nil {
		t.Error("a missing file is no error")
	}
}

// Whatever an older file has, each finding has a verdict, a reason unless it is the same, and no control characters.
func FuzzText(f *testing.F) {
	for name, text := range map[string]string{
		"etcd.conf":       "endpoints: [a:1]\ntls: {enabled: true}\n? [a]\n: b\n",
		"redis.conf":      "pool: {max-connections: 1}\ntls: &a {b: *a}\n",
		"http.conf":       "sign-key: \"\\u0007\"\n--- 2\n",
		"supervisor.conf": "programs:\n- {executable-path: vpp-agent, executable-args: [-x, --y=1, -]}\n",
		"agent.env":       "export A\x1b=1\nDEBUG_\x07=1\n",
		"a.service":       "Environment=\"DEBUG_\x07 =1\" NOREDACT=\nExecStart=vpp-agent -\x1b=1 \\\n -etcd-config a\n",
		"compose.yaml":    "services: {a: {environment: [DEBUG_\u0007=1, {name: x}], env: {DEBUG_A: 1}, command: 'vpp-agent -a'}}\n---\n? [a]\n: b\n",
	} {
		f.Add(name, []byte(text))
	}
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		s := newStart()
		s.environmentText(name, string(text))
		if !strings.Contains(string(text), "EnvironmentFile") && s.unit(name, string(text)) != nil {
			t.Errorf("a unit without other files is an error")
		}
		if !strings.Contains(string(text), "env_file") {
			_ = s.manifests(name, text) // most texts are no YAML
		}
		s.supervisor(name, text)
		for _, one := range append(s.inText(name, name, text), s.findings...) {
			if !slices.Contains([]verdict{same, changed, ignored, stops}, verdict(one.Verdict)) || one.Verdict != string(same) && one.Why == "" {
				t.Errorf("%+v", one)
			}
			if line := one.text(); line != show.Line(line) {
				t.Errorf("%q is no line", line)
			}
		}
	})
}

// The agent does not start with settings of which vpp-agent 3.5 ignored one.
func TestContradictions(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"etcd, TLS and clear text":   {"etcd.conf", "endpoints: [https://a:1, http://b:1]\nca-file: c", "etcd.conf:1 endpoints stops\netcd.conf:2 ca-file same\n"},
		"etcd, clear text":           {"etcd.conf", "endpoints: [http://b:1]\nca-file: c\ninsecure-transport: true", "etcd.conf:1 endpoints same\netcd.conf:2 ca-file same\netcd.conf:3 insecure-transport same\n"},
		"etcd, variables":            {"etcd.conf", "expand-env-variables: true", "etcd.conf:1 expand-env-variables stops\n"},
		"etcd, variables with names": {"etcd.conf", "expand-env-variables: true\nexpand-env-names: [A]", "etcd.conf:1 expand-env-variables changed\netcd.conf:2 expand-env-names changed\n"},
		"etcd, no variables":         {"etcd.conf", "expand-env-variables: false", "etcd.conf:1 expand-env-variables same\n"},
		"redis, TLS that is not on":  {"redis.conf", "tls: {enabled: false, skip-verify: true, cert-file: ''}", "redis.conf:1 tls.enabled same\nredis.conf:1 tls.skip-verify stops\nredis.conf:1 tls.cert-file same\n"},
		"redis, TLS":                 {"redis.conf", "tls: {enabled: true, ca-file: c}", "redis.conf:1 tls.enabled same\nredis.conf:1 tls.ca-file same\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdictsIn(t, c.file, c.text); got != c.want {
				t.Errorf("got\n%s\nexpected\n%s", got, c.want)
			}
		})
	}
}
