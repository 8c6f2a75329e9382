// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// finish compares a complete download with the digest that the server names, and returns its SHA-256.
func (d *download) finish() (string, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(d.file, 0, d.size)); err != nil {
		return "", fmt.Errorf("reading the download: %w", err)
	}
	got := hash.Sum(nil)
	if want := namedDigest(d.header); want != nil && string(want) != string(got) {
		if err := d.reset(""); err != nil {
			return "", err
		}
		return "", fmt.Errorf("the download has SHA-256 %x, but the server names %x: download it again", got, want)
	}
	return hex.EncodeToString(got), nil
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
	return errors.Join(removeIfExists(name), removeIfExists(tagFile(name)))
}

func removeIfExists(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// hideURL removes the URL from an error of net/http, since its signature is a credential.
func hideURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
