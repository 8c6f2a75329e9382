// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Bounds of the parts of an encoding. The head is written with each new row, and a chunk once the head has many.
const (
	// headBytes limits the rows of a head, without the names of their metrics.
	headBytes = 8 << 10
	// headRows is the number of newest rows that stay in a head whose other rows become a chunk, since rows still change
	// while they are new.
	headRows = 8
	// chunkBytes limits a chunk of several rows.
	chunkBytes = 64 << 10
	// maxChunks is more than the number of chunks that Encode makes: two neighbouring chunks together have more than
	// chunkBytes.
	maxChunks = 16
)

// chunk is a part of the encoding.
type chunk struct {
	// name is a digest of the chunk, so that an existing chunk is never written again.
	name string
	// last is the step of its last row.
	last int64
}

// Chunks returns the names of the chunks that the history was decoded from or last encoded as.
func (h *History) Chunks() []string {
	var names []string
	for _, c := range h.chunks {
		names = append(names, c.name)
	}
	return names
}

// end returns the index of the first row after chunks.
func (h *History) end(chunks []chunk) int {
	if len(chunks) == 0 {
		return 0
	}
	at, found := h.find(chunks[len(chunks)-1].last)
	if found {
		at++
	}
	return at
}

// layOut decides which rows the chunks have, and adds their encodings to encoded. It keeps the chunks before the first
// row that has changed. If the rows after them are too many for the head, it moves all but the newest into the last
// chunk, or into a new chunk if that is full.
func (h *History) layOut(encoded map[string][]byte) error {
	if err := h.keepUnchanged(encoded); err != nil {
		return err
	}
	begin := h.end(h.chunks)
	rest := h.Rows[begin:]
	if data, err := marshal(tableOf(rest).Rows); err != nil || len(data) <= headBytes {
		return err
	}
	end := len(h.Rows) - min(headRows, len(rest)/2)
	if n := len(h.chunks); n > 0 {
		first := h.end(h.chunks[:n-1])
		data, err := marshal(tableOf(h.Rows[first:end]))
		if err != nil {
			return err
		}
		if len(data) <= chunkBytes {
			delete(encoded, h.chunks[n-1].name)
			h.chunks, begin = h.chunks[:n-1], first
		}
	}
	return h.addChunks(h.Rows[begin:end], encoded)
}

// keepUnchanged keeps the chunks before the first chunk whose rows have changed, and forgets the others.
func (h *History) keepUnchanged(encoded map[string][]byte) error {
	for i, c := range h.chunks {
		data, err := marshal(tableOf(h.Rows[h.end(h.chunks[:i]):h.end(h.chunks[:i+1])]))
		if err != nil {
			return err
		}
		if nameOf(data) != c.name {
			h.chunks = h.chunks[:i]
			return nil
		}
		encoded[c.name] = data
	}
	return nil
}

// addChunks adds chunks that have the rows.
func (h *History) addChunks(rows []Row, encoded map[string][]byte) error {
	if len(rows) == 0 {
		return nil
	}
	data, err := marshal(tableOf(rows))
	if err != nil {
		return err
	}
	if half := len(rows) / 2; len(data) > chunkBytes && half > 0 {
		if err := h.addChunks(rows[:half], encoded); err != nil {
			return err
		}
		return h.addChunks(rows[half:], encoded)
	}
	c := chunk{name: nameOf(data), last: rows[len(rows)-1].Step}
	h.chunks = append(h.chunks, c)
	encoded[c.name] = data
	return nil
}

// decodeChunk adds the rows of a chunk, unless the chunk is missing or was changed.
func (h *History) decodeChunk(name string, data []byte) error {
	if data == nil || nameOf(data) != name {
		return nil
	}
	var in table
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("decoding chunk %s of history: %w", name, err)
	}
	rows, err := in.decode()
	if err != nil || len(rows) == 0 {
		return err
	}
	h.Rows, h.chunks = append(h.Rows, rows...), append(h.chunks, chunk{name: name, last: rows[len(rows)-1].Step})
	return nil
}

func nameOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:5])
}
