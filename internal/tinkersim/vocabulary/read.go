// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package vocabulary

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The names of the files at a hub.
const (
	tokenizerFile = "tokenizer.json"
	configFile    = "tokenizer_config.json"
)

// Load reads a file: a tokenizer.json, if its name ends in .json, or a file of tiktoken ranks. If there is a
// tokenizer_config.json in the same directory, it is served as well, and it names the added tokens that a
// tiktoken file lacks.
func Load(path string) (*Vocabulary, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading vocabulary: %w", err)
	}
	config, err := os.ReadFile(filepath.Join(filepath.Dir(path), configFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading vocabulary: %w", err)
	}
	name, read := tokenizerFile, readTokenizer
	if filepath.Ext(path) != ".json" {
		name, read = filepath.Base(path), readRanks
	}
	tokens, err := read(data, config)
	if err != nil {
		return nil, fmt.Errorf("reading vocabulary %s: %w", path, err)
	}
	v, err := build(tokens)
	if err != nil {
		return nil, fmt.Errorf("reading vocabulary %s: %w", path, err)
	}
	v.files, v.digest = map[string][]byte{name: data}, sha256.Sum256(data)
	if config != nil {
		v.files[configFile] = config
	}
	return v, nil
}

// readTokenizer reads a tokenizer.json of byte-level BPE. Only the text of the ids is needed.
func readTokenizer(data, _ []byte) ([]token, error) {
	var file struct {
		AddedTokens []struct {
			ID      int32  `json:"id"`
			Content string `json:"content"`
		} `json:"added_tokens"`
		Model struct {
			Type  string           `json:"type"`
			Vocab map[string]int32 `json:"vocab"`
		} `json:"model"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	if file.Model.Type != "BPE" && file.Model.Type != "" {
		return nil, fmt.Errorf("model.type is %q, only BPE can be read", file.Model.Type)
	}
	tokens := make([]token, 0, len(file.Model.Vocab)+len(file.AddedTokens))
	added := map[int32]bool{}
	for _, t := range file.AddedTokens {
		added[t.ID] = true
		tokens = append(tokens, token{id: t.ID, text: t.Content, added: true})
	}
	alphabet := byteAlphabet()
	for spelt, id := range file.Model.Vocab {
		if added[id] {
			continue
		}
		text, err := alphabet.decode(spelt)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token{id: id, text: text})
	}
	return tokens, nil
}

// readRanks reads lines of a token in base64 and its rank, which is its id.
func readRanks(data, config []byte) ([]token, error) {
	tokens, err := readAdded(config)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for number := 1; lines.Scan(); number++ {
		encoded, rank, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if encoded == "" {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(encoded)
		id, rankErr := strconv.ParseInt(rank, 10, 32)
		if !ok || err != nil || rankErr != nil {
			return nil, fmt.Errorf("line %d is not a token in base64 and its rank", number)
		}
		tokens = append(tokens, token{id: int32(id), text: string(text)})
	}
	return tokens, lines.Err()
}

// readAdded reads the added tokens of a tokenizer_config.json.
func readAdded(config []byte) ([]token, error) {
	if config == nil {
		return nil, nil
	}
	var file struct {
		Added map[string]struct {
			Content string `json:"content"`
		} `json:"added_tokens_decoder"`
	}
	if err := json.Unmarshal(config, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	var tokens []token
	for key, t := range file.Added {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not an id", configFile, key)
		}
		tokens = append(tokens, token{id: int32(id), text: t.Content, added: true})
	}
	return tokens, nil
}

// alphabet has the rune that byte-level vocabularies write for each byte: printable bytes of Latin-1 as
// themselves, the others as the runes from 256 on, in order.
type alphabet map[rune]byte

func byteAlphabet() alphabet {
	a := alphabet{}
	next := rune(256)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= '¡' && b <= '¬' || b >= '®' {
			a[b] = byte(b)
			continue
		}
		a[next] = byte(b)
		next++
	}
	return a
}

func (a alphabet) decode(spelt string) (string, error) {
	text := make([]byte, 0, len(spelt))
	for _, r := range spelt {
		b, ok := a[r]
		if !ok {
			return "", fmt.Errorf("the vocabulary is not byte-level: token %q has the character %q", spelt, r)
		}
		text = append(text, b)
	}
	return string(text), nil
}
