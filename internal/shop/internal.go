package shop

import (
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// profileTimeout is the longest that a profile may take.
const profileTimeout = 2 * time.Minute

func (s *Shop) internalServer() *http.Server {
	return &http.Server{
		Handler:           neverKept(s.internalRoutes()),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      profileTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
}

// internalRoutes has the routes for operators. It has the probes, too, because the public listener
// bounds its connections. It does not show the command line, because flags may hold passwords.
func (s *Shop) internalRoutes() http.Handler {
	mux := http.NewServeMux()
	if s.Staff {
		mux.Handle("/", s.staffEngine()) // which has the probes, too
	} else {
		probes := gin.New()
		probes.Use(identify)
		probes.Match(read, "/livez", s.getLive)
		probes.Match(read, "/readyz", s.getReady)
		mux.Handle("/livez", probes)
		mux.Handle("/readyz", probes)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelError)}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
