// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// linkLife is how long the link to an archive holds.
const linkLife = 15 * time.Minute

// link is what the link to an archive says.
type link struct {
	Path    string `json:"path"`
	Expires int64  `json:"exp"`
}

// archiveLink answers with a redirect to the archive, which can be fetched without a key.
func (s *Server) archiveLink(r *request, path tinker.Path) (response, error) {
	if _, err := r.life.Checkpoint(path); err != nil {
		return response{}, err
	}
	expires := s.options.Clock().Add(linkLife)
	token, err := s.sign(link{Path: path.String(), Expires: expires.Unix()})
	if err != nil {
		return response{}, err
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	url := fmt.Sprintf("%s://%s/archives/%s", scheme, r.Host, token)
	answer, err := inJSON(http.StatusFound, tinker.ArchiveResponse{URL: url, Expires: &expires})
	answer.header = http.Header{"Location": {url}, "Expires": {expires.UTC().Format(http.TimeFormat)}}
	return answer, err
}

// archive answers the link.
func (s *Server) archive(r *request) (response, error) {
	var link link
	if err := s.verify(r.PathValue("token"), &link); err != nil || s.options.Clock().Unix() >= link.Expires {
		return response{}, refuse(http.StatusForbidden, "the link does not hold")
	}
	path, err := tinker.ParsePath(link.Path)
	if err != nil {
		return response{}, err
	}
	body, err := r.life.Archive(path)
	return response{status: http.StatusOK, contentType: "application/x-tar", body: body}, err
}
