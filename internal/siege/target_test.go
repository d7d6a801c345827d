package siege

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
)

// A target is all that attackers can reach of one agent.
type target struct {
	*agent
	struck func() // counts a strike of the attack that holds this copy

	// Of an agent whose stores are real.
	store *goredis.Client // a Redis that the agent follows; nil: it has hostile ones
	files string          // a folder that the agent follows
	vpp   *vppsim.Sim     // the VPP that the agent programs
	dir   string          // a folder for what attackers refer to

	// Of an agent whose stores are hostile: where it expects them.
	secure                     *tls.Config // of its servers' clients; nil: they speak in the clear
	etcd, redis, consul, plane net.Listener
	behind                     string // the socket of a sound VPP
}

// mostKeys is the number of keys that the stores of an agent may have together.
const mostKeys = 8000

// moderate is the configuration of agents under attack. Operations that hang are given up
// sooner than by default, and removals wait for a shorter time.
func moderate(files map[string]string) map[string]string {
	files["kvscheduler.conf"] = "operation-timeout: 2s\n"
	// Those who attack over TCP may change the network: without that, most of their requests end before they are read.
	files["http.conf"], files["grpc.conf"] = "unauthenticated: write\n", "unauthenticated: write\n"
	files["orchestrator.conf"] = fmt.Sprintf("grace-time: 2s\nmax-keys: %d\npublish-status: [%s]\n", mostKeys, files["orchestrator.conf"])
	return files
}

// startStores starts an agent whose stores are real ones. Its good values are in etcd.
func startStores(t testing.TB, program string) (*target, *referee) {
	t.Helper()
	etcd := testkit.StartEtcd(t, testkit.EtcdOptions{})
	redis := testkit.StartRedis(t, testkit.RedisOptions{Args: []string{"--appendonly", "no"}})
	client := goredis.NewClient(&goredis.Options{Addr: redis.Addr, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	t.Cleanup(func() { client.Close() })
	dir := t.TempDir()
	vpp := startVPP(t, filepath.Join(dir, "api.sock"))
	files := filepath.Join(dir, "network")
	if err := os.Mkdir(files, 0o700); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, program, "stores", moderate(map[string]string{
		"etcd.conf":         "endpoints: [" + etcd.Addr + "]\noperation-timeout: 30s\n",
		"redis.conf":        "endpoint: " + redis.Addr + "\n",
		"filedb.conf":       "configuration-paths: [" + files + "]\nstatus-path: " + filepath.Join(dir, "status") + "/\n",
		"govpp.conf":        "binapi-socket-path: " + filepath.Join(dir, "api.sock") + "\n",
		"orchestrator.conf": "redis, filedb",
	}))
	return &target{agent: a, store: client, files: files, vpp: vpp, dir: dir},
		startReferee(t, rules{Endpoint: etcd.Endpoint, Root: rootOf("stores"), Prefix: goodPrefix + "a", Net: 101})
}

// startServers starts an agent whose servers are hostile. Its good values are in a file.
func startServers(t testing.TB, program string) (*target, *referee) {
	t.Helper()
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if err := os.Mkdir(good, 0o700); err != nil {
		t.Fatal(err)
	}
	out := &target{behind: filepath.Join(dir, "sound.sock"), secure: &tls.Config{InsecureSkipVerify: true}}
	pair := testkit.MakeCertificates(t).Server
	out.etcd, out.redis, out.consul = listen(t, "tcp", "127.0.0.1:0"), listen(t, "tcp", "127.0.0.1:0"), listen(t, "tcp", "127.0.0.1:0")
	out.plane = listen(t, "unix", filepath.Join(dir, "api.sock"))
	startVPP(t, out.behind)
	files := moderate(map[string]string{
		"etcd.conf":         "endpoints: [" + out.etcd.Addr().String() + "]\n",
		"redis.conf":        "endpoint: " + out.redis.Addr().String() + "\n",
		"consul.conf":       "address: " + out.consul.Addr().String() + "\n",
		"filedb.conf":       "configuration-paths: [" + good + "]\n",
		"govpp.conf":        "binapi-socket-path: " + out.plane.Addr().String() + "\n",
		"orchestrator.conf": "etcd, redis, consul",
	})
	files["http.conf"] += "server-cert-file: " + pair.Cert + "\nserver-key-file: " + pair.Key + "\n"
	files["grpc.conf"] += "cert-file: " + pair.Cert + "\nkey-file: " + pair.Key + "\n"
	out.agent = startAgent(t, program, "servers", files)
	return out, startReferee(t, rules{File: filepath.Join(good, "good.json"), Prefix: goodPrefix + "b", Net: 102, Keeps: true})
}

func listen(t testing.TB, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// startVPP starts a simulated VPP.
func startVPP(t testing.TB, socket string) *vppsim.Sim {
	t.Helper()
	vpp, err := vppsim.New(vppsim.Options{Socket: socket})
	if err == nil {
		err = vpp.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vpp.Kill)
	return vpp
}

// An item is a key, which begins with "config/", and what a store has there.
type item struct{ key, value string }

// write puts items into Redis.
func (t *target) write(ctx context.Context, items ...item) error {
	pipe := t.store.Pipeline()
	for _, it := range items {
		pipe.Set(ctx, rootOf(t.label)+it.key, it.value, 0)
	}
	_, err := pipe.Exec(ctx)
	return unlessOver(ctx, err)
}

// save gives a file of the agent's folder new content.
func (t *target) save(name string, content []byte) error {
	return replaceFile(filepath.Join(t.files, name), content)
}

// everywhere puts items into Redis and into a file, and has the agent plan and check them.
func (t *target) everywhere(ctx context.Context, name string, items ...item) error {
	values := map[string]json.RawMessage{}
	for _, it := range items {
		if json.Valid([]byte(it.value)) {
			values[it.key] = json.RawMessage(it.value)
		}
	}
	document := documentOf(values)
	if err := errors.Join(t.save(name+".json", document), t.write(ctx, items...)); err != nil {
		return err
	}
	t.submit(ctx, document)
	return nil
}

// submit has the agent plan and check a document. It does not wait long for a server that other
// attacks keep busy.
func (t *target) submit(ctx context.Context, document []byte) {
	for _, path := range []string{"/scheduler/plan", "/scheduler/validate"} {
		soon, cancel := context.WithTimeout(ctx, 2*time.Second)
		t.post(soon, path, bytes.NewReader(document))
		cancel()
	}
}

// address is that of a page, or of a call.
func (t *target) address(at, path string) string {
	if t.secure != nil {
		return "https://" + at + path
	}
	return "http://" + at + path
}

// browser is for requests whose answers are read or given up. Each has a connection of its own.
func (t *target) browser() *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: t.secure}}
}

// post sends a request with a body, and reads the answer. The agent may refuse it.
func (t *target) post(ctx context.Context, path string, body io.Reader) int {
	return t.ask(ctx, http.MethodPost, path, body)
}

// get asks for a page, and reads it. The agent may refuse that.
func (t *target) get(ctx context.Context, path string) int {
	return t.ask(ctx, http.MethodGet, path, http.NoBody)
}

// ask makes a request and returns the status of the answer, or 0 without an answer.
func (t *target) ask(ctx context.Context, method, path string, body io.Reader) int {
	request, err := http.NewRequestWithContext(ctx, method, t.address(t.web, path), body)
	if err != nil {
		t.Error(err) // a mistake of the attack
		return 0
	}
	answer, err := t.browser().Do(request)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // an answer that breaks off is one, too
	return answer.StatusCode
}

// account is the agent's own explanation of the state of an interface of the kernel.
func (t *target) account(ctx context.Context, name string) string {
	var out strings.Builder
	for _, path := range []string{"/scheduler/explain?format=text&key=" + linux(name), "/sources?key=" + linux(name), "/sources", "/scheduler/key-timeline?key=" + linux(name)} {
		text, err := t.read(ctx, path)
		fmt.Fprintf(&out, "%s: %v\n%s\n", path, err, text)
	}
	return out.String()
}

// read returns a page, of which the end is cut off if it is long.
func (t *target) read(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.address(t.web, path), http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := t.browser().Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(io.LimitReader(answer.Body, 1<<20))
}

// connect opens a connection to the HTTP server; nil if it takes none.
func (t *target) connect(ctx context.Context) net.Conn {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", t.web)
	if err != nil {
		return nil
	}
	return c
}

// dial connects, and encrypts the connection if the server wants that; nil if it takes none.
func (t *target) dial(ctx context.Context) net.Conn {
	c := t.connect(ctx)
	if c == nil || t.secure == nil {
		return c
	}
	within, cancel := context.WithTimeout(ctx, 200*time.Millisecond) // a server that takes no more connections says nothing
	defer cancel()
	safe := tls.Client(c, t.secure)
	if safe.HandshakeContext(within) != nil {
		c.Close()
		return nil
	}
	return safe
}

// leave removes what attackers have declared, and returns when nothing of it is in the kernel.
func (t *target) leave(ctx context.Context) error {
	if t.store == nil {
		return nil
	}
	if err := t.store.FlushAll(ctx).Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(t.files)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(t.files, e.Name())))
	}
	if err != nil {
		return err
	}
	return alone(ctx)
}

// unlessOver is err, unless ctx has ended, which breaks off what is under way.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// linux and plane are the keys of interfaces.
func linux(name string) string { return "config/linux/interfaces/v2/interface/" + name }
func plane(name string) string { return "config/vpp/v2/interfaces/" + name }

// quoted is text as JSON has it.
func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string is always JSON
	}
	return string(out)
}

// dummy is an interface of the kernel, with further fields: `,"mtu":1500`.
func dummy(name, more string) item {
	return item{linux(name), fmt.Sprintf(`{"name":%s,"type":"DUMMY"%s}`, quoted(name), more)}
}

// veth is one end of a cable in the kernel.
func veth(name, peer, more string) item {
	return item{linux(name), fmt.Sprintf(`{"name":%s,"type":"VETH","veth":{"peer_if_name":%s}%s}`, quoted(name), quoted(peer), more)}
}

// loop is an interface of VPP, with further fields.
func loop(name, more string) item {
	return item{plane(name), fmt.Sprintf(`{"name":%s,"type":"SOFTWARE_LOOPBACK"%s}`, quoted(name), more)}
}

// listOf is a JSON list of n strings.
func listOf(n int, text func(i int) string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoted(text(i)))
	}
	b.WriteByte(']')
	return b.String()
}
