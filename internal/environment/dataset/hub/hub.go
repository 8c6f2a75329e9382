// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub reads data sets of a Hugging Face hub over its HTTP API: the commit of a revision, the files at that
// commit, the files of each split, and their contents.
package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/download"
)

// DefaultURL is the public hub.
const DefaultURL = "https://huggingface.co"

// maxFiles bounds a listing.
const maxFiles = 100_000

// Repository is a repository with a data set. Its methods return the errors of Client: an *httpstatus.Error if the
// hub refuses a request.
type Repository struct {
	Client *download.Client
	// URL is the URL of the hub. Defaults to DefaultURL.
	URL  string
	Name string
	// Token may be empty.
	Token string
}

// Commit is a repository at a commit.
type Commit struct {
	SHA string
	// Configs are the configurations that the data set's card lists.
	Configs []Config
	// Files are sorted by path.
	Files []File
}

// File is a file of a repository.
type File struct {
	Path string
	// Size is the size in bytes.
	Size int64
	// SHA256 is the digest in hexadecimal digits; empty for a small file, for which the hub gives no such digest.
	SHA256 string
}

// Read returns the repository at a revision: a branch, a tag or a commit.
func (r Repository) Read(ctx context.Context, revision string) (Commit, error) {
	address, err := r.address("api/datasets", r.Name, "revision", url.PathEscape(revision))
	if err != nil {
		return Commit{}, err
	}
	var info struct {
		SHA      string `json:"sha"`
		CardData struct {
			Configs []Config `json:"configs"`
		} `json:"cardData"`
	}
	if _, err := r.page(ctx, address, &info); err != nil {
		return Commit{}, err
	}
	if !regexp.MustCompile(`^[0-9a-f]{40,64}$`).MatchString(info.SHA) {
		return Commit{}, fmt.Errorf("the hub names no commit of %s at %s", r.Name, revision)
	}
	commit := Commit{SHA: info.SHA, Configs: info.CardData.Configs}
	commit.Files, err = r.files(ctx, info.SHA)
	return commit, err
}

// files lists the files at a commit.
func (r Repository) files(ctx context.Context, commit string) ([]File, error) {
	next, err := r.address("api/datasets", r.Name, "tree", commit)
	if err != nil {
		return nil, err
	}
	next += "?recursive=true"
	var files []File
	for next != "" {
		var page []struct {
			Type, Path string
			Size       int64
			LFS        *struct{ OID string }
		}
		header, err := r.page(ctx, next, &page)
		if err != nil {
			return nil, err
		}
		for _, entry := range page {
			if entry.Type != "file" {
				continue
			}
			file := File{Path: entry.Path, Size: entry.Size}
			if entry.LFS != nil {
				file.SHA256 = entry.LFS.OID
			}
			files = append(files, file)
		}
		if len(files) > maxFiles {
			return nil, fmt.Errorf("%s has over %d files", r.Name, maxFiles)
		}
		if next, err = r.following(next, header); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files, nil
}

var nextPage = regexp.MustCompile(`<([^>]+)>;\s*rel="next"`)

// following returns the address of the next page, which is empty after the last page. The address must be at the same
// host, since the token is sent there.
func (r Repository) following(page string, header http.Header) (string, error) {
	link := nextPage.FindStringSubmatch(header.Get("Link"))
	if link == nil {
		return "", nil
	}
	at, err := url.Parse(page)
	if err != nil {
		return "", err
	}
	next, err := at.Parse(link[1])
	if err != nil || next.Host != at.Host || next.Scheme != at.Scheme {
		return "", fmt.Errorf("the hub continues a listing elsewhere, at %s", link[1])
	}
	return next.String(), nil
}

// Open begins to read a file at a commit.
func (r Repository) Open(ctx context.Context, commit, path string) (*download.Body, error) {
	address, err := r.address("datasets", r.Name, "resolve", commit, (&url.URL{Path: path}).EscapedPath())
	if err != nil {
		return nil, err
	}
	return r.Client.Open(ctx, download.Source{URL: address, Token: r.Token})
}

func (r Repository) address(parts ...string) (string, error) {
	base, err := url.Parse(cmp.Or(r.URL, DefaultURL))
	if err != nil {
		return "", err
	}
	return base.JoinPath(parts...).String(), nil
}

// page reads an answer in JSON.
func (r Repository) page(ctx context.Context, address string, into any) (http.Header, error) {
	data, header, err := r.Client.Page(ctx, address, r.Token)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, fmt.Errorf("decoding what %s answers: %w", address, err)
	}
	return header, nil
}
