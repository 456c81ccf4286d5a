package shop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"mime"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-playground/validator/v10"

	"stocklock/internal/stock"
)

// maxBody is how many bytes a body may have. The longest basket fits with spaces and line breaks.
const maxBody = 8 << 10

// inRange checks the values of a body by its tags. A bound that Go also needs has a name here, because
// a tag cannot name a constant. openapi.yaml has each bound, too, and a test holds it to them.
var inRange = func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.SetTagName("range")
	named := regexp.MustCompile(namePattern)
	if err := v.RegisterValidation("named", func(f validator.FieldLevel) bool { return named.MatchString(f.Field().String()) }); err != nil {
		panic(err) // the tag's name cannot be
	}
	checkReservations(v)
	v.RegisterAlias("ordered", fmt.Sprintf("min=1,max=%d", maxQuantity))
	v.RegisterAlias("lines", fmt.Sprintf("min=1,max=%d", maxLines))
	v.RegisterAlias("restocked", fmt.Sprintf("min=1,max=%d", stock.MaxStock))
	v.RegisterAlias("stocked", fmt.Sprintf("min=0,max=%d", stock.MaxStock))
	return v
}()

// namePattern is what a name looks like: no control character, line break, mark of direction or
// invisible filler, no half character, and no space at its ends. openapi.yaml has it, too.
const (
	notInNames  = `\x00-\x1F\x7F-\x9F` + "\u061C\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF0-\uFFFF"
	spaces      = ` \xA0` + "\u1680\u2000-\u200A\u202F\u205F\u3000"
	namePattern = "^[^" + notInNames + spaces + "]([^" + notInNames + "]*[^" + notInNames + spaces + "])?$"
)

// requestBody is the JSON object of a request, with the ranges of its values in tags. Its fields are
// scalars, and lists of objects of scalars.
type requestBody interface {
	example() string // a right one
	ranges() string  // what the values must be
}

// readBody reads and checks the body of a request.
func readBody[T requestBody](c *gin.Context) (body T, err error) {
	if err := wantJSON(c.Request); err != nil {
		return body, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	if err != nil {
		return body, unread(err)
	}
	return parseBody[T](text)
}

// whole is a whole number in JSON that fits into an int64. 1, 1.0 and 1e0 are the same number.
type whole int64

var errNotWhole = errors.New("not a whole number")

// UnmarshalJSON reads a number. The exact value counts, whatever its notation.
func (w *whole) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil { // the usual notation; the decoder knows that it is JSON
		*w = whole(n)
		return nil
	}
	const longest = 64 // also bounds what an exponent can ask for, with the next line
	_, exponent, _ := strings.Cut(strings.ToLower(string(text)), "e")
	value, ok := new(big.Rat), false
	if len(text) <= longest && len(exponent) <= len("+99") {
		_, ok = value.SetString(string(text))
	}
	if !ok || !value.IsInt() || !value.Num().IsInt64() || text[0] == '"' {
		return errNotWhole
	}
	*w = whole(value.Num().Int64())
	return nil
}

// wantJSON refuses a body with another media type or an encoding, and one whose announced length is
// too large.
func wantJSON(r *http.Request) error {
	const usual = "application/json"
	media, params, err := usual, map[string]string(nil), error(nil)
	if sent := r.Header.Get("Content-Type"); sent != usual {
		media, params, err = mime.ParseMediaType(sent)
	}
	if err != nil || media != usual {
		return refusal{wrongMediaType, "send the body with Content-Type: application/json"}
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refusal{wrongMediaType, fmt.Sprintf("send the body in UTF-8, not in %q", charset)}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" {
		return refusal{wrongMediaType, fmt.Sprintf("send the body without Content-Encoding, not with %q", encoding)}
	}
	if r.ContentLength > maxBody {
		return errTooLarge
	}
	return nil
}

var errTooLarge = refusal{tooLarge, fmt.Sprintf("a body has at most %d bytes", maxBody)}

// unread says why the body did not arrive. The errors' own texts are not for clients, because they
// contain the shop's address.
func unread(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errTooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refusal{tooSlow, fmt.Sprintf("the body did not come within %s: nothing was done", readTimeout)}
	}
	return refusal{malformed, "the body cannot be read: it is shorter than was announced, or its chunks are wrong"}
}

// parseBody reads one JSON object, with nothing after it. The names are checked here, because
// encoding/json accepts names in capitals and the last of two equal names.
func parseBody[T requestBody](text []byte) (body T, err error) {
	if simple, ok := any(&body).(interface{ read([]byte) bool }); ok && simple.read(text) {
		return body, nil
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&body); err != nil {
		return body, unreadable(body, err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return body, unreadable(body, errors.New("something comes after it"))
	}
	if err := checkNames(json.NewDecoder(bytes.NewReader(text)), reflect.TypeFor[T]()); err != nil {
		return body, unreadable(body, err)
	}
	if err := inRange.Struct(body); err != nil {
		return body, refusal{invalid, body.ranges()}
	}
	return body, nil
}

// checkNames refuses the names of a decoded value that the decoder lets through. The value comes next.
func checkNames(in *json.Decoder, of reflect.Type) error {
	begin, err := in.Token()
	if _, opens := begin.(json.Delim); err != nil || !opens {
		return err // a scalar
	}
	fields := map[string]reflect.Type{}
	if of.Kind() == reflect.Struct {
		for field := range of.Fields() {
			fields[field.Tag.Get("json")] = field.Type
		}
	}
	var seen []string
	for in.More() {
		value := of
		if of.Kind() == reflect.Slice {
			value = of.Elem()
		} else {
			token, err := in.Token()
			if err != nil {
				return err
			}
			name, allowed := fmt.Sprint(token), false
			switch value, allowed = fields[name]; {
			case !allowed:
				return fmt.Errorf("unknown field %q", name)
			case slices.Contains(seen, name):
				return fmt.Errorf("it has the %s twice", name)
			}
			seen = append(seen, name)
		}
		if err := checkNames(in, value); err != nil {
			return err
		}
	}
	_, err = in.Token() // its end
	return err
}

// unreadable describes the error in terms of the request, not of this program.
func unreadable(body requestBody, err error) error {
	if errors.Is(err, errNotWhole) {
		return refusal{invalid, body.ranges()}
	}
	why := strings.TrimPrefix(err.Error(), "json: ")
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field != "" {
			return refusal{invalid, body.ranges()}
		}
		why = "it is of the type " + wrong.Value
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		why = "it ends too early"
	}
	return refusal{malformed, "the body must be " + body.example() + ": " + why}
}
