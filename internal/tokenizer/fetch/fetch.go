// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

const (
	// DefaultEndpoint is the hub where HF_ENDPOINT names no other.
	DefaultEndpoint = "https://huggingface.co"
	// mostBytes of a file: several times the largest known.
	mostBytes = 128 << 20
)

// Fetcher finds tokenizer files. It is safe for concurrent use, as is its cache among several processes.
type Fetcher struct {
	// Endpoint of the hub; DefaultEndpoint where it is empty.
	Endpoint string
	// Token for repositories of the hub that are not open to everybody; "" for none.
	Token string
	// Cache is the folder where downloads are kept by their digests; "" keeps nothing.
	Cache string
	// Client for downloads; http.DefaultClient where it is nil.
	Client *http.Client
}

// DigestError reports that a file is not the one that was asked for.
type DigestError struct {
	Source Source
	Got    string
}

// Error implements error.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s has sha256 %s, want %s: the file has changed; if that is meant, set sha256 to the new one in a new run",
		e.Source, e.Got, e.Source.SHA256)
}

// ParseError reports that a file is no tokenizer, or one that is not understood whole.
type ParseError struct {
	Source Source
	Err    error
}

// Error implements error.
func (e *ParseError) Error() string {
	return fmt.Sprintf("reading the tokenizer %s: %v", e.Source, e.Err)
}

// Unwrap returns the cause.
func (e *ParseError) Unwrap() error { return e.Err }

// IsFinal reports whether Load would fail again: the file is another one or not understood, or it is not to be
// had. Everything else is a server or a network that may answer later.
func IsFinal(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Status/100 == 4 && status.Status != http.StatusTooManyRequests && status.Status != http.StatusRequestTimeout
	}
	var changed *DigestError
	var unreadable *ParseError
	return errors.As(err, &changed) || errors.As(err, &unreadable)
}

// Load returns a source's tokenizer and the SHA-256 of its file, by which it can be asked for again. A file of
// another digest than the source's is a *DigestError, one that is no tokenizer a *ParseError.
func (f *Fetcher) Load(ctx context.Context, source Source) (tokens *tokenizer.BPE, digest string, err error) {
	data, digest, err := f.File(ctx, source)
	if err != nil {
		return nil, "", err
	}
	if source.Ranks != "" {
		tokens, err = tokenizer.ParseTiktoken(source.Ranks, data, nil)
	} else {
		tokens, err = tokenizer.Parse(data)
	}
	if err != nil {
		return nil, "", &ParseError{Source: source, Err: err}
	}
	return tokens, digest, nil
}

// File returns the contents of a source and their SHA-256 in hexadecimal digits.
func (f *Fetcher) File(ctx context.Context, source Source) (data []byte, digest string, err error) {
	if err := source.check(); err != nil {
		return nil, "", fmt.Errorf("finding a tokenizer: %w", err)
	}
	if data, ok := f.cached(source.SHA256); ok {
		return data, source.SHA256, nil
	}
	if source.Path != "" {
		data, err = readFile(source.Path)
	} else {
		data, err = f.download(ctx, source)
	}
	if err != nil {
		return nil, "", fmt.Errorf("fetching the tokenizer %s: %w", source, err)
	}
	digest = sum(data)
	if source.SHA256 != "" && digest != source.SHA256 {
		return nil, "", &DigestError{Source: source, Got: digest}
	}
	if source.Path == "" {
		if err := f.store(data, digest); err != nil {
			return nil, "", fmt.Errorf("keeping the tokenizer %s: %w", source, err)
		}
	}
	return data, digest, nil
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return bounded(file)
}

// bounded reads all, unless it is more than a tokenizer can be.
func bounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err == nil && len(data) > mostBytes {
		err = fmt.Errorf("it has over %d MiB, which no tokenizer has", mostBytes>>20)
	}
	return data, err
}

func (f *Fetcher) download(ctx context.Context, source Source) ([]byte, error) {
	endpoint := f.Endpoint
	if endpoint == "" {
		endpoint = DefaultEndpoint
	}
	address, err := source.address(endpoint)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	// The token is for the hub alone; the client does not take it along to where the hub redirects.
	if f.Token != "" && source.Repository != "" {
		request.Header.Set("Authorization", "Bearer "+f.Token)
	}
	client := f.Client
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response.StatusCode, address, f.Token != "")
	}
	return bounded(response.Body)
}

// StatusError reports that a server did not give a file.
type StatusError struct {
	Status int
	Advice string
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answers %d %s: %s", e.Status, http.StatusText(e.Status), e.Advice)
}

func refusal(status int, address string, token bool) error {
	mend := "try again later, or set HF_ENDPOINT to another hub"
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		mend = "set HF_TOKEN to a token whose owner may read the repository"
		if token {
			mend = "the owner of HF_TOKEN may not read the repository; its licence may have to be accepted at the hub first"
		}
	case http.StatusNotFound:
		mend = "nothing is at " + address + "; check repository, revision and file"
	}
	return &StatusError{Status: status, Advice: mend}
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// cached returns a file of the cache if it is there and whole.
func (f *Fetcher) cached(digest string) ([]byte, bool) {
	if f.Cache == "" || digest == "" {
		return nil, false
	}
	data, err := readFile(f.path(digest))
	return data, err == nil && sum(data) == digest
}

func (f *Fetcher) path(digest string) string { return filepath.Join(f.Cache, "sha256-"+digest) }

// store puts a file into the cache, whole or not at all.
func (f *Fetcher) store(data []byte, digest string) error {
	if f.Cache == "" {
		return nil
	}
	if err := os.MkdirAll(f.Cache, 0o755); err != nil {
		return err
	}
	part, err := os.CreateTemp(f.Cache, "part-")
	if err != nil {
		return err
	}
	_, err = part.Write(data)
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), f.path(digest))
	}
	if err != nil {
		if gone := os.Remove(part.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
