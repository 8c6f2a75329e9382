// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package fetch loads tokenizer files: from a file, a URL, or a repository of a Hugging Face hub. It stores downloads
// in a folder by digest, so that a pod that knows the digest downloads a file once, and never reads a file other than
// the one with which the run began.
package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Source is the source of a tokenizer file. Exactly one of Path, URL and Repository is set.
type Source struct {
	// Path is the path of a file.
	Path string
	// URL is the URL of a file. It requires SHA256, since the file at a URL may change unnoticed.
	URL string
	// Repository is a repository of the hub, as org/name.
	Repository string
	// Revision is a branch, a tag or a commit of the repository. Defaults to main.
	Revision string
	// File is the path in the repository. Defaults to tokenizer.json.
	File string
	// Ranks is the family of a rank file (kimi_k2, o200k_base). It is empty for a tokenizer.json.
	Ranks string
	// SHA256 is the digest that the file must have, in hexadecimal digits. If it is empty, any file is accepted.
	SHA256 string
}

// String returns a description of the source for people.
func (s Source) String() string {
	switch {
	case s.Path != "":
		return s.Path
	case s.URL != "":
		return s.URL
	}
	return fmt.Sprintf("%s of %s at %s", s.file(), s.Repository, s.revision())
}

func (s Source) file() string { return cmp.Or(s.File, "tokenizer.json") }

func (s Source) revision() string { return cmp.Or(s.Revision, "main") }

var (
	digest     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	repository = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)
)

// check returns an error if the source is invalid.
func (s Source) check() error {
	set := 0
	for _, place := range []string{s.Path, s.URL, s.Repository} {
		if place != "" {
			set++
		}
	}
	switch {
	case set != 1:
		return errors.New("a tokenizer has one of path, url and repository")
	case s.SHA256 != "" && !digest.MatchString(s.SHA256):
		return fmt.Errorf("sha256 %q is not 64 hexadecimal digits in lower case", s.SHA256)
	case s.URL != "" && s.SHA256 == "":
		return fmt.Errorf("url %s needs sha256: the file at a URL may change unnoticed", s.URL)
	case s.Repository != "" && !repository.MatchString(s.Repository):
		return fmt.Errorf("repository %q is not of the form org/name", s.Repository)
	case s.File != "" && !plainPath(s.File):
		return fmt.Errorf("file %q is not a path within a repository", s.File)
	}
	return nil
}

func plainPath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// address returns the URL to download from, given the URL of the hub.
func (s Source) address(endpoint string) (string, error) {
	if s.URL != "" {
		return s.URL, nil
	}
	base, err := url.Parse(endpoint)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return "", fmt.Errorf("HF_ENDPOINT %q is not the URL of a hub", endpoint)
	}
	file := base.JoinPath(s.Repository, "resolve", url.PathEscape(s.revision()), s.file())
	return file.String(), nil
}
