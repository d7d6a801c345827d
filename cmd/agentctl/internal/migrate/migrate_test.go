package migrate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// A setting that keeps its meaning is one that the sample of the file documents.
func TestSettingsThatStayAreInTheSamples(t *testing.T) {
	for name, known := range files() {
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

func TestVerdicts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"etcd.conf":       "endpoints: [a:1]\nresync-after-reconnect: true\nendpints: [b:1]\n",
		"http.conf":       "endpoint: 0.0.0.0:9191\nsign-key: secret\nrate-limiter: {limit: 1}\n",
		"grpc.conf":       "endpoint: 127.0.0.1:9111\n",
		"kafka.conf":      "addrs: [c:1]\n",
		"supervisor.conf": "programs:\n- {name: agent, executable-path: /bin/vpp-agent, executable-args: [--config-dir=/x, -kafka-config, k.conf, -what]}\n- {executable-path: /bin/vpp, executable-args: [-c]}\n",
		"redis.conf":      "- list\n",
		"own.conf":        "a: 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := inFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, strings.Join(strings.Fields(f.Place+" "+f.What+" "+f.Verdict), " "))
	}
	want := []string{
		"etcd.conf:1 endpoints same", "etcd.conf:2 resync-after-reconnect ignored", "etcd.conf:3 endpints changed",
		"grpc.conf:1 endpoint same",
		"http.conf:1 endpoint changed", "http.conf:2 sign-key stops", "http.conf:3 rate-limiter.limit same",
		"kafka.conf ignored", "own.conf ignored", "redis.conf:1 stops",
		"supervisor.conf ignored", "supervisor.conf -config-dir same", "supervisor.conf -kafka-config ignored", "supervisor.conf -what stops",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !worst(found) {
		t.Error("nothing stops the agent")
	}
	if _, err := inFolder(t.TempDir()); err == nil {
		t.Error("an empty folder is no error")
	}
}

// Variables of an environment file are those of flags, of the agent itself, or of other programs.
func TestVariables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.env")
	text := "# of the agent\nMICROSERVICE_LABEL=a\nexport KAFKA_CONFIG=k\n\nDEBUG_INFRA=1\nKVSCHED_VERIFY_MODE=1\nETCD_EXPAND_ENV_VARS=1\nPATH=/bin\nNOREDACT\nGRPC_PORT=1\nSTOP_TIMEOUT = 7s\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := inEnvironment(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, f.Place+" "+f.What+" "+f.Verdict)
	}
	want := []string{
		"agent.env:2 MICROSERVICE_LABEL same", "agent.env:3 KAFKA_CONFIG ignored", "agent.env:5 DEBUG_INFRA ignored", "agent.env:6 KVSCHED_VERIFY_MODE ignored",
		"agent.env:7 ETCD_EXPAND_ENV_VARS changed", "agent.env:10 GRPC_PORT changed", "agent.env:11 STOP_TIMEOUT same",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := inEnvironment(file + ".missing"); err == nil {
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
	} {
		f.Add(name, []byte(text))
	}
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		for _, one := range slices.Concat(inText(name, text), variables(name, string(text))) {
			if !slices.Contains([]verdict{same, changed, ignored, stops}, verdict(one.Verdict)) || one.Verdict != string(same) && one.Why == "" {
				t.Errorf("%+v", one)
			}
			if line := one.text(); line != show.Line(line) {
				t.Errorf("%q is no line", line)
			}
		}
	})
}
