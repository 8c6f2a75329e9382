// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// maxDoubts limits how often a call is repeated in a row after answers that are in doubt.
const maxDoubts = 4

// doubts counts the answers in doubt that a call has received in a row. Such an answer may be the server's own, or one
// that a proxy gave in the server's place.
type doubts int

// isRepeated reports whether a call is repeated after an error: a temporary one, an answer that cannot be the
// server's own, or one of the first maxDoubts answers in doubt, which it counts.
func (d *doubts) isRepeated(req request, e *Error) bool {
	if e.Temporary() || isForeign(req, e) {
		return true
	}
	if !isDoubtful(req, e) {
		return false
	}
	*d++
	return *d <= maxDoubts
}

// isForeign reports whether an answer cannot be the server's own: a page instead of JSON, or a refusal of a poll,
// since even a failed operation has a result. A 400 is in doubt, because some servers answer the poll of a failed
// operation with it.
func isForeign(req request, e *Error) bool {
	switch e.Category {
	case tinker.CategoryProtocol:
		return isSuccess(e) && e.Message != "" // the body is not JSON
	case tinker.CategoryUser:
		return isPage(e) || (req.longPoll && e.Status != http.StatusBadRequest)
	case tinker.CategoryTooLarge, tinker.CategoryUnsupported, tinker.CategoryConflict:
		return req.longPoll
	}
	return false
}

// isDoubtful reports whether an answer may be the server's own. Some servers respond with 409 while an earlier attempt
// of the call is in progress; a 409 for a save may mean that the name is in use, which does not pass.
func isDoubtful(req request, e *Error) bool {
	switch e.Category {
	case tinker.CategoryConflict:
		return !isSave(e.Op)
	case tinker.CategoryProtocol:
		return isSuccess(e)
	case tinker.CategoryUser:
		return req.longPoll
	}
	return false
}

// isSuccess reports whether an answer has the status of a success.
func isSuccess(e *Error) bool { return e.Status/100 == 2 }

// isPage reports whether an answer is a page for people.
func isPage(e *Error) bool { return strings.HasPrefix(e.Message, "<") }

// checkKeys returns an error if an answer is a JSON object that has keys, but none of the keys of a T: it is the answer
// to another request.
func checkKeys[T any](op string, body []byte) error {
	var keys map[string]json.RawMessage
	if json.Unmarshal(body, &keys) != nil || len(keys) == 0 {
		return nil
	}
	if _, typed := keys["type"]; typed {
		return nil
	}
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if _, known := keys[name]; known {
			return nil
		}
	}
	return protocolError(op, fmt.Errorf("response has nothing of what was asked for"))
}
