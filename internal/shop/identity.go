package shop

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
)

// maxSubjectLength is what orders.subject can hold.
const maxSubjectLength = 64

// SubjectHeader returns a [Config.Subject] that believes a header, which a gateway sets. A request names
// nobody if it has none. Two of them are an error.
func SubjectHeader(name string) func(*http.Request) (string, error) {
	return func(r *http.Request) (string, error) {
		switch subjects := r.Header.Values(name); {
		case len(subjects) == 0:
			return "", nil
		case len(subjects) > 1 || subjects[0] == "":
			return "", fmt.Errorf("%s must be there once, and name who asks", name)
		default:
			return subjects[0], nil
		}
	}
}

// subject returns who asks. It is empty if nobody is named, where that is allowed.
func (s *Shop) subject(c *gin.Context) (string, error) {
	name, anonymous := s.Subject, s.Anonymous && s.Limit == 0
	if c.GetBool(forStaff) {
		name, anonymous = s.Staff, false
	}
	if name == nil {
		return "", nil
	}
	switch subject, err := name(c.Request); {
	case err != nil:
		return "", refusal{malformed, err.Error()}
	case subject == "" && anonymous:
		return "", nil
	case subject == "":
		return "", refusal{malformed, "the request does not name who asks, which the gateway in front of the shop has to do"}
	case !isLabel(subject, maxSubjectLength):
		return "", refusal{malformed, fmt.Sprintf("the name of who asks must be 1 to %d printable characters without space", maxSubjectLength)}
	default:
		return subject, nil
	}
}

// forStaff marks requests on the listener of the staff.
const forStaff = "for staff"
