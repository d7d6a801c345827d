package consul_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keyplane/keyplane/connectors/consul"
)

// A redirect to another host would hand the ACL token to it.
func TestRedirectsToOtherHostsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(thief.Close)
	hostile := httptest.NewServer(http.RedirectHandler(thief.URL+"/v1/kv/", http.StatusTemporaryRedirect))
	t.Cleanup(hostile.Close)
	cfg := consul.Config{Address: hostile.URL, Token: "s3cret"}
	if err := ended(t, connect(cfg), root); !strings.Contains(err.Error(), "not following a redirect to "+thief.URL) {
		t.Errorf("the watch ended with: %v", err)
	}
	client, err := consul.Dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "not following a redirect") {
		t.Errorf("Get: %v", err)
	}
	if reached.Load() {
		t.Error("the other host was asked")
	}
}
