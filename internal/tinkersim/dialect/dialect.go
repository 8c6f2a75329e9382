// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package dialect makes the simulator behave like servers that implement the Tinker API differently. Each dialect is
// a handler in front of the simulator's own handler. It translates requests and responses.
package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// The names of the dialects.
const (
	// Protobuf is the simulator itself.
	Protobuf = ""
	// NameJSON reads and answers training data and samples in JSON only.
	NameJSON = "json"
	// NameSkyRL is SkyRL 0.3.0, as testdata of package tinker records it.
	NameSkyRL = "skyrl"
)

// Options configure a dialect.
type Options struct {
	// PollHold is the time for which SkyRL holds a poll before it answers 408; 300 s by default.
	PollHold time.Duration
	// LoadSampler submits a load of sampler weights into the model that saved them, under a number of an operation.
	LoadSampler func(model string, seq int64, name string) error
}

// Wrap returns the handler of a dialect in front of the simulator's.
func Wrap(name string, inner http.Handler, options Options) (http.Handler, error) {
	switch name {
	case Protobuf:
		return inner, nil
	case NameJSON:
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refusesProtobuf(w, r) {
				return
			}
			r.Header.Del("Accept")
			inner.ServeHTTP(w, r)
		}), nil
	case NameSkyRL:
		return newSkyRL(inner, options), nil
	}
	return nil, fmt.Errorf("dialect %q is unknown; choose json or skyrl", name)
}

// refusesProtobuf refuses a protobuf body as FastAPI does, whose models read only JSON, and reports whether it did.
func refusesProtobuf(w http.ResponseWriter, r *http.Request) bool {
	if !strings.Contains(r.Header.Get("Content-Type"), tinker.ContentProtobuf) {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body) // a client that has not sent all of it would see no response
	answer(w, http.StatusUnprocessableEntity, tinker.ErrorResponse{Detail: []tinker.ValidationIssue{{
		Loc: []string{"body"}, Msg: "Input should be a valid dictionary or object to extract fields from",
		Type: "model_attributes_type",
	}}})
	return true
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"detail":"Internal Server Error"}`)
	}
	w.Header().Set("Content-Type", tinker.ContentJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that disconnected will ask again
}

// object is a JSON object whose members keep their text unless they are replaced.
type object map[string]json.RawMessage

// set replaces a member.
func (o object) set(name string, value any) {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // every value here can be encoded
	}
	o[name] = encoded
}

// text returns a member that is a string, or an empty string.
func (o object) text(name string) string {
	var value string
	_ = json.Unmarshal(o[name], &value)
	return value
}

// inner is the simulator behind a dialect.
type inner struct{ http.Handler }

// reply is a response of the simulator.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// object returns the body as an object.
func (r reply) object() object {
	o := object{}
	_ = json.Unmarshal(r.body, &o)
	return o
}

// call sends a request to the simulator in place of the one that arrived.
func (i inner) call(r *http.Request, method, path string, body any) reply {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // every body here can be encoded
	}
	encoded = innerIDs(encoded)
	clone := r.Clone(r.Context())
	clone.Method, clone.URL.Path = method, string(innerIDs([]byte(path)))
	clone.RequestURI = clone.URL.RequestURI()
	clone.Header.Del("Accept")
	clone.Header.Set("Content-Type", tinker.ContentJSON)
	clone.Body, clone.ContentLength = io.NopCloser(bytes.NewReader(encoded)), int64(len(encoded))
	recorder := httptest.NewRecorder()
	i.ServeHTTP(recorder, clone)
	return reply{recorder.Code, recorder.Header(), outerIDs(recorder.Body.Bytes())}
}

// The simulator's ids contain colons, which ids of other servers must not.
func innerIDs(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte("__train__"), []byte(":train:"))
}
func outerIDs(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte(":train:"), []byte("__train__"))
}
