// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
)

// File downloads a file to name, and returns its SHA-256. It continues the part that an earlier call has left under
// the name, if the server has named the part's version and still serves it. Only one process at a time may write to a
// name. If the server names a digest, the file must have it.
func (c *Client) File(ctx context.Context, source Source, name string) (string, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("downloading: %w", err)
	}
	defer file.Close()
	b := c.body(ctx, source)
	digest, err := b.store(partial{file})
	if err != nil && b.version == "" {
		err = errors.Join(err, Discard(name)) // A part without a version cannot be continued.
	}
	return digest, err
}

// store writes the body to a file, after the part that the file has.
func (b *Body) store(p partial) (string, error) {
	var err error
	if b.version, b.offset, err = p.restore(); err != nil {
		return "", fmt.Errorf("downloading: %w", err)
	}
	b.begin = p.begin
	if err := b.retry(errNotOpen); err != nil {
		return "", fmt.Errorf("downloading: %w", err)
	}
	_, err = io.Copy(p.file, b)
	if err = errors.Join(err, b.Close()); err != nil {
		return "", err
	}
	got, err := p.sum()
	if err != nil {
		return "", err
	}
	if want := namedDigest(b.header); want != nil && string(want) != string(got) {
		b.version = ""
		return "", fmt.Errorf("the download has SHA-256 %x, but the server names %x: download it again", got, want)
	}
	return hex.EncodeToString(got), nil
}

// partial is a file with a part of a download.
type partial struct{ file *os.File }

// versionFile returns the name of the file that has the version of a download.
func versionFile(name string) string { return name + ".version" }

// restore returns the version and the size of the part that an earlier call has left.
func (p partial) restore() (version string, size int64, err error) {
	text, err := os.ReadFile(versionFile(p.file.Name()))
	if err != nil {
		return "", 0, p.begin("")
	}
	size, err = p.file.Seek(0, io.SeekEnd)
	return string(text), size, err
}

// begin empties the file, and records the version of the next download; version is empty if the server names none.
func (p partial) begin(version string) error {
	_, err := p.file.Seek(0, io.SeekStart)
	if err = errors.Join(err, p.file.Truncate(0)); err != nil {
		return fmt.Errorf("writing the download: %w", err)
	}
	if version == "" {
		err = removeIfExists(versionFile(p.file.Name()))
	} else {
		err = atomicfile.Write(versionFile(p.file.Name()), 0o600, []byte(version))
	}
	if err != nil {
		return fmt.Errorf("writing the version of the download: %w", err)
	}
	return nil
}

// sum returns the SHA-256 of the file.
func (p partial) sum() ([]byte, error) {
	hash := sha256.New()
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the download: %w", err)
	}
	if _, err := io.Copy(hash, p.file); err != nil {
		return nil, fmt.Errorf("reading the download: %w", err)
	}
	return hash.Sum(nil), nil
}

// namedDigest returns the SHA-256 of the whole file that a response names, or nil.
func namedDigest(header http.Header) []byte {
	named := []string{header.Get("X-Amz-Checksum-Sha256")}
	for _, field := range []string{"Repr-Digest", "Digest"} {
		for part := range strings.SplitSeq(header.Get(field), ",") {
			algorithm, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if strings.EqualFold(algorithm, "sha-256") {
				named = append(named, strings.Trim(value, ":"))
			}
		}
	}
	for _, text := range named {
		if digest, err := base64.StdEncoding.DecodeString(text); err == nil && len(digest) == sha256.Size {
			return digest
		}
	}
	return nil
}

// Discard removes a download that is not needed any more.
func Discard(name string) error {
	return errors.Join(removeIfExists(name), removeIfExists(versionFile(name)))
}

func removeIfExists(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
