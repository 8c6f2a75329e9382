// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// archiveTokenTTL is how long the link to an archive holds.
const archiveTokenTTL = 15 * time.Minute

// archiveToken is what the link to an archive says.
type archiveToken struct {
	Path    string `json:"path"`
	Expires int64  `json:"exp"`
}

// redirectToArchive answers with a redirect to the archive, which can be fetched without a key.
func (s *Server) redirectToArchive(r *request, path tinker.Path) (response, error) {
	if _, err := r.state.Checkpoint(path); err != nil {
		return response{}, err
	}
	expires := s.options.Clock().Add(archiveTokenTTL)
	token, err := s.sign(archiveToken{Path: path.String(), Expires: expires.Unix()})
	if err != nil {
		return response{}, err
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	url := fmt.Sprintf("%s://%s/archives/%s", scheme, r.Host, token)
	answer, err := jsonResponse(http.StatusFound, tinker.ArchiveResponse{URL: url, Expires: &expires})
	answer.header = http.Header{"Location": {url}, "Expires": {expires.UTC().Format(http.TimeFormat)}}
	return answer, err
}

// downloadArchive answers the link.
func (s *Server) downloadArchive(r *request) (response, error) {
	var link archiveToken
	if err := s.verify(r.PathValue("token"), &link); err != nil || s.options.Clock().Unix() >= link.Expires {
		return response{}, newHTTPError(http.StatusForbidden, "the link does not hold")
	}
	path, err := tinker.ParsePath(link.Path)
	if err != nil {
		return response{}, err
	}
	body, err := r.state.Archive(path)
	return response{status: http.StatusOK, contentType: "application/x-tar", body: body}, err
}
