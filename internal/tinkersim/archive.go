// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// archiveTokenTTL is how long the URL of an archive is valid.
const archiveTokenTTL = 15 * time.Minute

// archiveToken is the signed part of an archive's URL.
type archiveToken struct {
	Path    string `json:"path"`
	Expires int64  `json:"exp"`
}

// redirectToArchive responds with a redirect to the archive, which can be fetched without a key.
func (s *Server) redirectToArchive(r *request, path tinker.Path) (response, error) {
	if _, err := r.state.Checkpoints.Get(path); err != nil {
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
	resp, err := jsonResponse(http.StatusFound, tinker.ArchiveResponse{URL: url, Expires: &expires})
	resp.header = http.Header{"Location": {url}, "Expires": {expires.UTC().Format(http.TimeFormat)}}
	return resp, err
}

// downloadArchive responds with the archive of a signed URL.
func (s *Server) downloadArchive(r *request) (response, error) {
	var link archiveToken
	if err := s.verify(r.PathValue("token"), &link); err != nil || s.options.Clock().Unix() >= link.Expires {
		return response{}, newHTTPError(http.StatusForbidden, "the archive URL is invalid or has expired")
	}
	path, err := tinker.ParsePath(link.Path)
	if err != nil {
		return response{}, err
	}
	body, err := r.state.Checkpoints.Archive(path)
	return response{status: http.StatusOK, contentType: "application/x-tar", body: body}, err
}
