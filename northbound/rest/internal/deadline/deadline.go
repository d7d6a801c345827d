// Package deadline limits the time for which a client reads an answer. The time begins with the answer:
// the deadline of http.Server begins with the request, so a transaction or a wait would take from it.
//
//	server.Handler = deadline.Handler(next, 2*time.Minute)
//	w = deadline.Unread(w, 2*time.Minute, 10*time.Second) // an answer whose memory others wait for
package deadline

import (
	"net/http"
	"time"
)

// Never stands for no limit of time.
const Never = 100 * 365 * 24 * time.Hour

// A writer breaks off an answer that its client does not read in time.
type writer struct {
	http.ResponseWriter
	most, unread time.Duration // of the whole answer, and without any reading; 0: no such limit
	end          time.Time     // of the whole answer; zero: it has not begun
}

// Handler gives the client of each answer so much time to read the whole of it. The server needs a
// WriteTimeout of its own, such as Never, so that the deadline of one answer does not end the next.
func Handler(next http.Handler, most time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&writer{ResponseWriter: w, most: most}, r)
	})
}

// Unread breaks off the answer also if the client reads nothing of it for a time. most is the time for the
// whole answer where the server has no Handler of this package.
func Unread(w http.ResponseWriter, most, unread time.Duration) http.ResponseWriter {
	out, ok := w.(*writer)
	if !ok {
		out = &writer{ResponseWriter: w, most: most}
	}
	out.unread = unread
	return out
}

// Unwrap lets http.ResponseController find the writer of the server.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	now := time.Now()
	begins := w.end.IsZero()
	if begins {
		w.end = now.Add(w.most)
	}
	if begins || w.unread > 0 {
		until := w.end
		if part := now.Add(w.unread); w.unread > 0 && part.Before(until) {
			until = part
		}
		// Writers without a connection, such as those of tests, have no deadline.
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(until)
	}
	return w.ResponseWriter.Write(p)
}
