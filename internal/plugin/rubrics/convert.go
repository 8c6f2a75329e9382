// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rubrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/shuffle"
)

// The seed and the share of the recipe's own split.
const (
	shuffleSeed = 42
	trainShare  = 0.9
)

// Row is a row of the data set.
type Row struct {
	TaskID  string   `json:"task_id"`
	Prompt  string   `json:"prompt"`
	Rubrics []string `json:"rubrics"`
}

// criterion matches the name of a criterion, but not the name of an annotator's justification, which has the same
// beginning.
var criterion = regexp.MustCompile(`^rubric\s*-\s*(\d+)\.\s*criterion$`)

// Convert reads the recipe's JSON, a list of objects or one object after the other, and returns its rows in their
// order. An error names the object and the field.
func Convert(data []byte) ([]Row, error) {
	objects, err := decode(escapeTabs(data))
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(objects))
	for i, object := range objects {
		if rows[i], err = rowOf(object); err != nil {
			return nil, fmt.Errorf("converting object %d: %w", i+1, err)
		}
	}
	return rows, nil
}

func decode(data []byte) ([]map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		var objects []map[string]any
		if err := decoder.Decode(&objects); err != nil {
			return nil, fmt.Errorf("decoding the list: %w", err)
		}
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return nil, errors.New("decoding the list: it is followed by more data")
		}
		return objects, nil
	}
	var objects []map[string]any
	for {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding object %d: %w", len(objects)+1, err)
		}
		objects = append(objects, object)
	}
}

// escapeTabs escapes the tabs within strings, which JSON forbids and the recipe's file has.
func escapeTabs(data []byte) []byte {
	out := make([]byte, 0, len(data))
	inString, escaped := false, false
	for _, c := range data {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString && c == '\t':
			out = append(out, '\\', 't')
			continue
		}
		out = append(out, c)
	}
	return out
}

func rowOf(object map[string]any) (Row, error) {
	row := Row{}
	switch id := object["task_id"].(type) {
	case string:
		row.TaskID = id
	case json.Number:
		row.TaskID = id.String()
	}
	if row.TaskID == "" {
		return Row{}, errors.New("task_id must be a text or a number: add it")
	}
	if row.Prompt, _ = object["prompt"].(string); strings.TrimSpace(row.Prompt) == "" {
		return Row{}, fmt.Errorf("prompt of task %s must be a text: add it", row.TaskID)
	}
	criteria := map[int]string{}
	for key, value := range object {
		match := criterion.FindStringSubmatch(key)
		if match == nil || value == nil {
			continue
		}
		number, err := strconv.Atoi(match[1])
		text, ok := value.(string)
		switch {
		case err != nil || criteria[number] != "":
			return Row{}, fmt.Errorf("%q of task %s has a number that is given twice or too large: correct it", key, row.TaskID)
		case !ok:
			return Row{}, fmt.Errorf("%q of task %s must be a text: correct it", key, row.TaskID)
		case strings.TrimSpace(text) == "":
			continue
		}
		criteria[number] = text
	}
	if len(criteria) == 0 {
		return Row{}, fmt.Errorf("task %s has no criterion under a key such as %q: add one, or remove the task", row.TaskID,
			"rubric - 1. criterion")
	}
	for _, number := range slices.Sorted(maps.Keys(criteria)) {
		row.Rubrics = append(row.Rubrics, criteria[number])
	}
	return row, nil
}

// Split shuffles the rows as the recipe does, and cuts them into nine tenths to train on and the rest to test with.
func Split(rows []Row) (train, test []Row) {
	shuffled := make([]Row, len(rows))
	for i, from := range shuffle.Python(shuffleSeed, len(rows)) {
		shuffled[i] = rows[from]
	}
	at := int(trainShare * float64(len(rows)))
	return shuffled[:at], shuffled[at:]
}

// Encode writes rows as JSON lines.
func Encode(rows []Row) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for _, row := range rows {
		if err := encoder.Encode(row); err != nil {
			return nil, fmt.Errorf("encoding task %s: %w", row.TaskID, err)
		}
	}
	return out.Bytes(), nil
}
