package siege

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// hostileConsul answers with broken JSON, indexes that make no sense, and bodies without end.
func hostileConsul(ctx context.Context, t *target) error {
	answers, count := consulAnswers(strings.TrimPrefix(rootOf(t.label), "/")+linux("x")), atomic.Int64{}
	indexes := []string{"10", "", "-1", "18446744073709551616", "0", "x", "9223372036854775807", "3"}
	server := http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.struck()
		n := int(count.Add(1))
		w.Header().Set("X-Consul-Index", indexes[n%len(indexes)])
		w.Header().Set("X-Consul-Knownleader", "true")
		if strings.HasPrefix(r.URL.Path, "/v1/kv/") && n%4 == 0 {
			_, _ = io.WriteString(w, "[]") // some listings succeed, so that the agent goes on
			return
		}
		answers[n%len(answers)](w)
	})}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(t.consul); !errors.Is(err, http.ErrServerClosed) {
		return unlessOver(ctx, err)
	}
	return nil
}

// consulAnswers are bodies. That one cannot be written, as the agent has enough of it, is no
// matter.
func consulAnswers(key string) []func(w http.ResponseWriter) {
	say := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { _, _ = io.WriteString(w, text) }
	}
	pair := func(more string) string {
		return fmt.Sprintf(`{"Key":%q,"CreateIndex":1,"ModifyIndex":5,"LockIndex":0,"Flags":0%s}`, key, more)
	}
	return []func(http.ResponseWriter){
		say("{"), say("null"), say("[null,null]"), say(`[{"Key":7}]`), say("[" + pair(`,"Value":"%%%"`) + "]"), say("[" + pair(`,"Value":`)),
		say(`[{"Key":"/elsewhere","Value":"e30="}]`), say("[" + pair(`,"ModifyIndex":-1`) + "]"), say("[" + pair("") + "," + pair("") + "]"), say(`"text"`), say(""),
		say(strings.Repeat("[", 1<<20)), say(strings.Repeat(`{"Key":`, 1<<18)),
		func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			say(strings.Repeat("E", 4<<20))(w)
		},
		func(w http.ResponseWriter) {
			w.Header().Set("Location", "/v1/kv/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		func(w http.ResponseWriter) { w.Header().Set("Content-Length", "1000000000000"); say("[")(w) },
		func(w http.ResponseWriter) {
			say("[")(w)
			_, _ = io.CopyN(w, endless(pair(`,"Value":"e30="`)+","), 256<<20)
		},
		func(w http.ResponseWriter) {
			say("[" + pair(`,"Value":"`))(w)
			_, _ = io.CopyN(w, endless("AAAA"), 256<<20)
		},
		func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "gzip"); _, _ = w.Write(bomb()) },
	}
}

// bomb is a small body that unpacks to 256 MB.
func bomb() []byte {
	var b bytes.Buffer
	packed := gzip.NewWriter(&b)
	if _, err := io.CopyN(packed, endless("[[[["), 256<<20); err != nil {
		panic(err) // a buffer takes all
	}
	if err := packed.Close(); err != nil {
		panic(err) // likewise
	}
	return b.Bytes()
}
