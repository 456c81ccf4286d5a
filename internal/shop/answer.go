package shop

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// boundAnswer is a middleware that bounds the time to write an answer, from its first byte.
func boundAnswer(c *gin.Context) {
	w := &boundedWriter{ResponseWriter: c.Writer}
	c.Writer = w
	c.Next()
	w.begin() // an answer without a body is written after the handlers
}

// boundedWriter sets the connection's write deadline when the answer begins.
type boundedWriter struct {
	gin.ResponseWriter
	begun bool
}

func (w *boundedWriter) begin() {
	if !w.begun {
		w.begun = true
		w.setDeadline(time.Now().Add(answerTimeout))
	}
}

// setDeadline ignores the one error there is: a writer without deadlines, as tests have.
func (w *boundedWriter) setDeadline(t time.Time) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

func (w *boundedWriter) WriteString(s string) (int, error) {
	w.begin()
	return w.ResponseWriter.WriteString(s)
}

func (w *boundedWriter) WriteHeaderNow() {
	w.begin()
	w.ResponseWriter.WriteHeaderNow()
}

// Unwrap is for [http.ResponseController].
func (w *boundedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
