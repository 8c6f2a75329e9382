// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/download"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

const (
	// DefaultEndpoint is the hub that is used unless HF_ENDPOINT is set.
	DefaultEndpoint = "https://huggingface.co"
	// mostBytes is the largest size of a file. It is several times the size of the largest known file.
	mostBytes = 128 << 20
)

// Fetcher loads tokenizer files. It is safe for concurrent use, and several processes may share its cache.
type Fetcher struct {
	// Endpoint is the URL of the hub. Defaults to DefaultEndpoint.
	Endpoint string
	// Token is the token for repositories of the hub that are not public; "" if there is none.
	Token string
	// TokenFile is the path of a file with a token, which replaces Token. The file is read for each download, since it
	// changes with its Secret. TokenFile is "" if model.tokenizer.tokenSecretKeyRef is not set.
	TokenFile string
	// Cache is the folder that stores downloads by digest. If it is "", nothing is stored.
	Cache string
	// Client is used for downloads. Defaults to http.DefaultClient.
	Client *http.Client
	// Logger receives how much of a download has arrived; it may be nil.
	Logger *slog.Logger
}

// DigestError reports that a file has another digest than its source requires.
type DigestError struct {
	Source Source
	Got    string
}

// Error implements error.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s has sha256 %s, want %s: the file has changed; if that is intended, set sha256 to the new one "+
		"in a new run",
		e.Source, e.Got, e.Source.SHA256)
}

// ParseError reports that a file is not a tokenizer, or has something that is not supported.
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

// Load returns the tokenizer of a source and the SHA-256 of its file. The error is a *DigestError if the file does not
// have the digest of the source, and a *ParseError if the file is not a supported tokenizer.
func (f *Fetcher) Load(ctx context.Context, source Source) (tokens tokenizer.Tokenizer, digest string, err error) {
	data, digest, err := f.File(ctx, source)
	if err != nil {
		return nil, "", err
	}
	if source.Ranks != "" {
		tokens, err = tokenizer.ParseTiktoken(source.Ranks, data, nil)
	} else {
		tokens, err = tokenizer.Read(data)
	}
	if err != nil {
		return nil, "", &ParseError{Source: source, Err: err}
	}
	return tokens, digest, nil
}

// File returns the contents of a source and their SHA-256 in hexadecimal digits.
func (f *Fetcher) File(ctx context.Context, source Source) (data []byte, digest string, err error) {
	if err := source.check(); err != nil {
		return nil, "", fmt.Errorf("checking the source of a tokenizer: %w", err)
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
			return nil, "", fmt.Errorf("storing the tokenizer %s: %w", source, err)
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

// bounded reads everything, up to the largest size of a tokenizer.
func bounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err == nil && len(data) > mostBytes {
		err = fmt.Errorf("it has over %d MiB, which no tokenizer has", mostBytes>>20)
	}
	return data, err
}

// download returns the file of a source. It continues a download that breaks off; with a cache, a later call or
// another process can continue it too. A request that receives nothing ends the download: callers report why, and try
// again.
func (f *Fetcher) download(ctx context.Context, source Source) ([]byte, error) {
	address, err := source.address(cmp.Or(f.Endpoint, DefaultEndpoint))
	if err != nil {
		return nil, err
	}
	from := download.Source{URL: address, Name: source.String(), MostBytes: mostBytes}
	if source.Repository != "" { // The token is only for the hub.
		if from.Token, err = f.token(); err != nil {
			return nil, err
		}
	}
	client := &download.Client{HTTP: f.Client, Tries: 1, Logger: f.Logger}
	from.Advise = func(status int) string { return f.advice(status, from.Token != "") }
	return f.downloadFile(ctx, client, from)
}

// token returns the token for the hub; "" if there is none.
func (f *Fetcher) token() (string, error) {
	if f.TokenFile == "" {
		return f.Token, nil
	}
	token, err := os.ReadFile(f.TokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("model.tokenizer.tokenSecretKeyRef: the Secret does not exist, or lacks the key: create it")
	}
	return strings.TrimSpace(string(token)), err
}

// downloadFile reads a file through the cache. Without a cache, or while another process downloads the file into the
// cache, it reads the file into memory.
func (f *Fetcher) downloadFile(ctx context.Context, client *download.Client, from download.Source) ([]byte, error) {
	if f.Cache == "" {
		return inMemory(ctx, client, from)
	}
	if err := os.MkdirAll(f.Cache, 0o755); err != nil {
		return nil, err
	}
	name := filepath.Join(f.Cache, "partial-"+sum([]byte(from.URL)))
	lock := flock.New(name)
	defer func() { _ = lock.Close() }()
	if !owns(lock, name) {
		return inMemory(ctx, client, from)
	}
	if _, err := client.File(ctx, from, name); err != nil {
		return nil, err
	}
	data, err := readFile(name)
	return data, errors.Join(err, download.Discard(name))
}

// owns takes a lock, and reports whether the lock is still the lock of the named file: a process that has just
// finished may have removed the file.
func owns(lock *flock.Flock, name string) bool {
	if locked, err := lock.TryLock(); err != nil || !locked {
		return false
	}
	held, err := lock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(held, named)
}

func inMemory(ctx context.Context, client *download.Client, from download.Source) ([]byte, error) {
	body, err := client.Open(ctx, from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // Everything that matters has been read.
	return io.ReadAll(body)
}

// advice returns what to do if the hub refuses a file with a status.
func (f *Fetcher) advice(status int, token bool) string {
	const licence = " may not read the repository; its licence may have to be accepted at the hub first"
	refused := status == http.StatusUnauthorized || status == http.StatusForbidden
	switch {
	case refused && !token:
		return "set HF_TOKEN, or model.tokenizer.tokenSecretKeyRef of a run, to a token whose owner may read the repository"
	case refused && f.TokenFile == "":
		return "the owner of HF_TOKEN" + licence
	case status == http.StatusUnauthorized:
		return "put a valid token into the Secret of model.tokenizer.tokenSecretKeyRef"
	case refused:
		return "the owner of the token in model.tokenizer.tokenSecretKeyRef" + licence
	}
	switch status {
	case http.StatusNotFound:
		return "check repository, revision and file"
	}
	return "try again later, or set HF_ENDPOINT to another hub"
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// cached returns a file of the cache if it exists and is complete.
func (f *Fetcher) cached(digest string) ([]byte, bool) {
	if f.Cache == "" || digest == "" {
		return nil, false
	}
	data, err := readFile(f.path(digest))
	return data, err == nil && sum(data) == digest
}

func (f *Fetcher) path(digest string) string { return filepath.Join(f.Cache, "sha256-"+digest) }

// store writes a file to the cache atomically.
func (f *Fetcher) store(data []byte, digest string) error {
	if f.Cache == "" {
		return nil
	}
	if err := os.MkdirAll(f.Cache, 0o755); err != nil {
		return err
	}
	return atomicfile.Write(f.path(digest), 0o600, data)
}
