package live

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"stocklock/internal/lab/service"
	"stocklock/internal/lab/words"
)

// maxBody bounds the body of a request, in bytes. All cells that can wait fit.
const maxBody = 256 << 10

// guarded checks what every request needs, and what those need that start something.
//
// A page of another site can make a browser send requests here. It cannot read the answers: a Host
// that is not ours is refused, which ends DNS rebinding, and nothing allows another origin. It
// cannot start anything: that needs the token, which it does not know. Under the address of the class there
// is the vote alone.
func (s *Server) guarded(next, phones http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		phone := s.class != nil && !s.ownHost(r.Host) && strings.EqualFold(hostName(r.Host), s.class.url.Hostname())
		if !phone && !s.ownHost(r.Host) {
			refuse(w, http.StatusForbidden, "host", errors.New("this address is not one of the page's own: open it as localhost, or name it with --url"))
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if err := sameOrigin.Check(r); err != nil {
				refuse(w, http.StatusForbidden, "origin", errors.New("the request comes from another site"))
				return
			}
			vote := s.class != nil && r.URL.Path == "/api/votes"
			if !phone && !vote && !s.mayDrive(r) {
				refuse(w, http.StatusUnauthorized, "token", errors.New("starting something needs the token: it is in the link that loadtest serve has printed"))
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		if phone {
			phones.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownHost reports whether a request names us: by a loopback name or address, or by a name that was
// given. The port does not matter: the one that a container publishes is not known inside.
func (s *Server) ownHost(host string) bool {
	name := hostName(host)
	if service.IsLoopback(name) || strings.HasSuffix(name, ".localhost") {
		return true
	}
	return slices.ContainsFunc(s.o.Hosts, func(own string) bool { return strings.EqualFold(own, name) })
}

// hostName is a Host without its port.
func hostName(host string) string {
	if withoutPort, _, err := net.SplitHostPort(host); err == nil {
		host = withoutPort
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

func (s *Server) mayDrive(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(s.o.Token)) == 1
}

// refusal is the body of an answer that refuses.
type refusal struct {
	Problem string     `json:"problem"` // one word, for the page
	Detail  string     `json:"detail"`  // for people, in English
	Say     words.Text `json:"say"`     // the same for the page
}

func refuse(w http.ResponseWriter, status int, problem string, why error) {
	answer(w, status, refusal{problem, why.Error(), words.Why(why)})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone reads nothing
}

// read decodes the body of a request, and answers a malformed one.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); media != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "malformed", errors.New("want Content-Type: application/json"))
		return false
	}
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "malformed", fmt.Errorf("the request is not what is expected: %w", err))
		return false
	}
	return true
}
