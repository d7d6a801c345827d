package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/types/known/sourcecontextpb"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/browser"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// fragile registers a descriptor of notes. Those that are named torn cannot be created.
func fragile(p Parts) ([]Task, error) {
	_, err := scheduler.Register(p.Scheduler, scheduler.Descriptor[*sourcecontextpb.SourceContext, struct{}]{
		Name: "acme-note", Model: noteModel(),
		Create: func(_ context.Context, key string, v *sourcecontextpb.SourceContext) (struct{}, error) {
			if v.GetFileName() == "torn" {
				return struct{}{}, errors.New("the paper is torn")
			}
			return struct{}{}, nil
		},
		Delete: func(context.Context, string, *sourcecontextpb.SourceContext, struct{}) error { return nil },
	})
	return nil, err
}

// freePort returns a port of the loopback that was free a moment ago. The HTTP server of an agent
// waits for its port, if another process has taken it meanwhile.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// awaitPage waits until the address answers.
func awaitPage(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			answer.Body.Close()
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

// TestThePageFollowsEtcd puts keys into etcd. They appear on the page, and a failure is explained,
// without anybody reloading it. The agent stops while the page is open.
func TestThePageFollowsEtcd(t *testing.T) {
	e := testkit.StartEtcd(t, testkit.EtcdOptions{})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	o := bare(t, "-http-port="+freePort(t))
	o.Without = []Part{Linux, VPP, GRPC}
	o.Models, o.Descriptors = []*models.Model{noteModel().Model}, []Addition{fragile}
	writeFile(t, filepath.Join(strings.TrimPrefix(o.Args[0], "-config-dir="), "etcd.conf"), "endpoints: ["+e.Endpoint+"]\n")
	address := "http://127.0.0.1:" + strings.TrimPrefix(o.Args[len(o.Args)-1], "-http-port=") + "/ui"
	started(t, o)
	awaitPage(t, address)

	page := browser.Open(t, address, browser.Desk())
	page.Allow("/readiness") // its status is 500 while something is missing
	page.Allow("net::ERR")   // the agent stops before the browser
	page.Until(`document.querySelector(".line.live") && document.title.startsWith("` + ownLabel(t) + `")`)
	put := func(name string) {
		t.Helper()
		_, err := client.Put(t.Context(), "/vnf-agent/"+ownLabel(t)+"/"+noteKey(name), `{"file_name":"`+name+`"}`)
		if err != nil {
			t.Fatal(err)
		}
	}
	put("whole")
	put("torn")
	page.Until(`[...document.querySelectorAll(".row")].some((r) => r.textContent.includes("torn") && r.textContent.includes("the paper is torn"))`)
	page.Click(".row")
	page.Until(`document.querySelector("#detail .error")?.textContent.includes("the paper is torn") && document.querySelector("#detail .fields td")?.textContent === "torn"`)
	page.Until(`[...document.querySelectorAll("#detail td")].some((c) => c.textContent === "etcd")`)
	page.Go("#values")
	page.Until(`[...document.querySelectorAll(".row")].some((r) => r.textContent.includes("whole") && r.textContent.includes("CONFIGURED"))`)
	if _, err := client.Delete(t.Context(), "/vnf-agent/"+ownLabel(t)+"/"+noteKey("torn")); err != nil {
		t.Fatal(err)
	}
	page.Until(`![...document.querySelectorAll(".row")].some((r) => r.textContent.includes("torn"))`)
}
