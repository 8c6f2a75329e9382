// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// eachLine writes a line of output for each line of the input, of any length. It skips empty lines. An error names the
// line and ends the output.
func eachLine(env cli.IO, answer func(line []byte) ([]byte, error)) error {
	in, out := bufio.NewReader(env.Stdin), bufio.NewWriter(env.Stdout)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading line %d: %w", number, err)
		}
		last := err != nil
		if line = bytes.TrimSpace(line); len(line) > 0 {
			result, err := answer(line)
			if err != nil {
				return errors.Join(fmt.Errorf("line %d: %w", number, err), out.Flush())
			}
			// Flush each answer: the program that writes the input may wait for it.
			_, err = out.Write(append(result, '\n'))
			if err := errors.Join(err, out.Flush()); err != nil {
				return fmt.Errorf("writing the answer to line %d: %w", number, err)
			}
		}
		if last {
			return nil
		}
	}
}

// readFields reads a line into a struct. A field that the struct lacks is an error.
func readFields(line []byte, target any) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if decoder.More() {
		return errors.New("there is more than one JSON value in the line: put each into a line of its own")
	}
	return nil
}

// idsLine is a line with token ids.
type idsLine struct {
	IDs *[]int32 `json:"ids"`
}

func readIDs(line []byte) ([]int32, error) {
	var in idsLine
	if err := readFields(line, &in); err != nil {
		return nil, fmt.Errorf(`reading {"ids": [...]}: %w`, err)
	}
	if in.IDs == nil {
		return nil, errors.New(`field ids is missing: give {"ids": [1, 2, 3]}`)
	}
	return *in.IDs, nil
}

// marshal writes JSON without escaping HTML, so that <think> stays readable.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
