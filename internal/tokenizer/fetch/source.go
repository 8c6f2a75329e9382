// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package fetch finds tokenizer files: in a file, at a URL, or in a repository of a Hugging Face hub. What is
// downloaded is kept in a folder by its digest, so that a pod that knows the digest asks nobody twice and never
// reads another file than the one that the run began with.
package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Source says where a tokenizer file is. One of Path, URL and Repository is set.
type Source struct {
	// Path of a file.
	Path string
	// URL of a file; it needs SHA256, since what is at a URL may change unseen.
	URL string
	// Repository of the hub, as org/name.
	Repository string
	// Revision in the repository: a branch, a tag or a commit; main where it is empty.
	Revision string
	// File in the repository; tokenizer.json where it is empty.
	File string
	// Ranks is the family of a rank file (kimi_k2, o200k_base); empty for a tokenizer.json.
	Ranks string
	// SHA256 that the file must have, in hexadecimal digits; empty where any will do.
	SHA256 string
}

// String names the source for people.
func (s Source) String() string {
	switch {
	case s.Path != "":
		return s.Path
	case s.URL != "":
		return s.URL
	}
	return fmt.Sprintf("%s of %s at %s", s.file(), s.Repository, s.revision())
}

func (s Source) file() string {
	if s.File == "" {
		return "tokenizer.json"
	}
	return s.File
}

func (s Source) revision() string {
	if s.Revision == "" {
		return "main"
	}
	return s.Revision
}

var (
	digest     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	repository = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)
)

// check says what is wrong with a source before anything is read.
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
		return fmt.Errorf("url %s needs sha256: what is at a URL may change unseen", s.URL)
	case s.Repository != "" && !repository.MatchString(s.Repository):
		return fmt.Errorf("repository %q is not of the form org/name", s.Repository)
	case s.File != "" && !plainPath(s.File):
		return fmt.Errorf("file %q is no path within a repository", s.File)
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

// address is the URL of a source that is downloaded, given the hub's.
func (s Source) address(endpoint string) (string, error) {
	if s.URL != "" {
		return s.URL, nil
	}
	base, err := url.Parse(endpoint)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return "", fmt.Errorf("HF_ENDPOINT %q is no URL of a hub", endpoint)
	}
	file := base.JoinPath(s.Repository, "resolve", url.PathEscape(s.revision()), s.file())
	return file.String(), nil
}
