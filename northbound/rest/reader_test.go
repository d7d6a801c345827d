package rest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// A stuck is a client that does not read.
type stuck struct {
	*httptest.ResponseRecorder
	release chan struct{}
}

func (s stuck) Write(p []byte) (int, error) {
	<-s.release
	return s.ResponseRecorder.Write(p)
}

// No transaction waits for a client, whatever it asked for.
func TestTransactionsWaitForNoReader(t *testing.T) {
	for _, url := range []string{
		"/scheduler/dump?descriptor=interface", "/scheduler/dump?descriptor=interface&view=NB", "/scheduler/dump?descriptor=interface&view=cached",
		"/scheduler/status", "/scheduler/txn-history", "/scheduler/txn-history?format=text", "/scheduler/graph-snapshot",
		"/scheduler/key-timeline?key=" + ifPrefix + "if1", "/scheduler/graph", "/scheduler/stats", "/scheduler/flag-stats?flag=descriptor",
		"/scheduler/explain?key=" + ifPrefix + "if1",
	} {
		inWorld(t, func(w *world) {
			w.must(w.commit("", &interfaces.Interface{Name: "if1", Type: interfaces.Interface_DUMMY}))
			client := stuck{httptest.NewRecorder(), make(chan struct{})}
			answered := make(chan struct{})
			go func() {
				w.handler.ServeHTTP(client, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil))
				close(answered)
			}()
			synctest.Wait() // now it writes, and is stuck
			select {
			case <-answered:
				w.t.Errorf("%s: the client was not stuck", url)
			default:
			}
			w.must(w.commit("", &interfaces.Interface{Name: "if2", Type: interfaces.Interface_DUMMY}))
			close(client.release)
			<-answered
			if client.Code != http.StatusOK || client.Body.Len() == 0 {
				w.t.Errorf("%s: %d %s", url, client.Code, client.Body)
			}
		})
	}
}
