package live

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/pages"
	"stocklock/internal/lab/words"
)

//go:embed page
var pageFiles embed.FS

// policy lets the page load what this server serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler answers requests. [Server.Serve] runs what they ask for.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for name, file := range assets() {
		mux.Handle("GET "+name, file)
	}
	var phones *http.ServeMux
	if s.class != nil {
		phones = s.phonesMay()
		for _, of := range []string{"GET " + votePage, "GET /api/ballot", "POST /api/votes"} {
			mux.Handle(of, phones)
		}
	}
	mux.HandleFunc("GET /api/course", serveCourse)
	mux.HandleFunc("GET /docs/", serveDocs)
	mux.HandleFunc("GET /internal/strategy/", serveDocs)
	mux.HandleFunc("GET /api/catalog", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.menu) })
	mux.HandleFunc("GET /api/events", s.serveEvents)
	mux.HandleFunc("GET /api/runs/{id}", s.serveRun)
	mux.HandleFunc("GET /api/runs/{id}/record", s.serveRecord)
	mux.HandleFunc("GET /api/loads/{id}/{file}", s.serveLoad)
	mux.HandleFunc("GET /api/tried/{id}", s.serveTried)
	mux.HandleFunc("POST /api/runs", asks(s, func(q struct {
		Cells []wanted `json:"cells"`
	}) (any, error) {
		return s.enqueue(q.Cells, nil)
	}))
	mux.HandleFunc("DELETE /api/runs", func(w http.ResponseWriter, _ *http.Request) {
		s.drop()
		answer(w, http.StatusOK, struct{}{})
	})
	mux.HandleFunc("POST /api/predictions", asks(s, func(p prediction) (any, error) { return p, s.predict(p) }))
	mux.HandleFunc("POST /api/loads", asks(s, func(c comparison) (any, error) { return s.compare(c) }))
	mux.HandleFunc("POST /api/positions", s.servePosition)
	mux.HandleFunc("POST /api/explorations", s.serveExploration)
	mux.HandleFunc("POST /api/ballots", asks(s, func(about subject) (any, error) { return s.ask(about) }))
	mux.HandleFunc("POST /api/token", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, struct{}{}) })
	return s.guarded(mux, phones)
}

// asset is a file of the page. It never changes while the program runs.
type asset struct {
	body, zipped []byte
	media, tag   string
}

// pageFile is a file of the page.
func pageFile(name string) string {
	content, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(content)
}

// assets are the files of the page by their addresses.
var assets = sync.OnceValue(pageAssets)

func pageAssets() map[string]asset {
	assets := map[string]asset{"/base.css": newAsset("base.css", pages.Base()), "/docs.css": newAsset("docs.css", pages.Style)}
	for _, l := range words.Languages {
		file := "words/" + l.String() + ".json"
		content, err := json.Marshal(l.Messages())
		if err != nil {
			panic(err) // they are texts
		}
		assets["/"+file] = newAsset(file, content)
	}
	files, err := pageFiles.ReadDir("page")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, file := range files {
		name := file.Name()
		url, body := "/"+name, pageFile(name)
		if name == "index.html" {
			url = "/{$}"
			assets[votePage+".html"] = newAsset(name, []byte(strings.Replace(body, "app.js", "vote.js", 1))) // of a phone
		}
		assets[url] = newAsset(name, []byte(body))
	}
	return assets
}

func newAsset(name string, body []byte) asset {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(body) // a buffer takes everything
	_ = z.Close()
	sum := sha256.Sum256(body)
	media := mime.TypeByExtension(path.Ext(name))
	if path.Ext(name) == ".js" {
		media = "text/javascript; charset=utf-8" // whatever the machine's own table says
	}
	return asset{body, zipped.Bytes(), media, `"` + hex.EncodeToString(sum[:8]) + `"`}
}

func (a asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Content-Type", a.media)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", a.tag)
	h.Set("Vary", "Accept-Encoding")
	body := a.body
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = a.zipped
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body)) // 304 for the same ETag
}

// asks decodes a request, and answers what it came to.
func asks[T any](s *Server, do func(T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked T
		if read(w, r, &asked) {
			what, err := do(asked)
			s.accepted(w, what, err)
		}
	}
}

// accepted answers what was asked for, or why it cannot be.
func (s *Server) accepted(w http.ResponseWriter, what any, err error) {
	switch {
	case errors.Is(err, errFull):
		refuse(w, http.StatusTooManyRequests, "full", err)
	case err != nil:
		refuse(w, http.StatusBadRequest, "malformed", err)
	default:
		s.mu.Lock() // a run may have begun meanwhile
		body, err := json.Marshal(what)
		s.mu.Unlock()
		if err != nil {
			s.log("answer what was queued: %v", err)
		}
		answer(w, http.StatusAccepted, json.RawMessage(body))
	}
}

// asked finds the run that a request is about.
func (s *Server) asked(w http.ResponseWriter, r *http.Request) (run, bool) {
	id, _ := strconv.Atoi(r.PathValue("id"))
	of, err := s.run(id)
	if err != nil {
		refuse(w, http.StatusNotFound, "missing", err)
	}
	return of, err == nil
}

func (s *Server) serveRecord(w http.ResponseWriter, r *http.Request) {
	of, ok := s.asked(w, r)
	if !ok {
		return
	}
	if of.record == nil {
		refuse(w, http.StatusGone, "gone", errors.New("the entries of this run are not kept any more: --record keeps them in files"))
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	_ = of.record.write(w)
}

func (s *Server) serveLoad(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.Atoi(r.PathValue("id"))
	found, err := s.report(id)
	if err != nil {
		refuse(w, http.StatusNotFound, "missing", err)
		return
	}
	var body bytes.Buffer
	switch file := r.PathValue("file"); file {
	case "report.html":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		err = Save(found, &body)
	case "result.json":
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		err = found.JSON(&body)
	default:
		refuse(w, http.StatusNotFound, "missing", errors.New("want report.html or result.json"))
		return
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, "failed", err)
		return
	}
	w.Header().Set("Content-Disposition", `attachment; filename="`+r.PathValue("file")+`"`)
	_, _ = body.WriteTo(w)
}

// serveTried answers a kept result of a service that was tried.
func (s *Server) serveTried(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || id < 1 || id > len(s.o.Tried) {
		refuse(w, http.StatusNotFound, "missing", errors.New("no result has this number"))
		return
	}
	answer(w, http.StatusOK, s.o.Tried[id-1])
}
