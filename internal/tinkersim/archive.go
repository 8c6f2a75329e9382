// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// archiveTokenTTL is the time for which the URL of an archive, or of a file of external weights, is valid.
const archiveTokenTTL = 15 * time.Minute

// archiveToken is the signed part of such a URL.
type archiveToken struct {
	Path    string `json:"path,omitempty"`
	Expires int64  `json:"exp"`
	// Run and Name identify external weights, and File is the name of the file.
	Run  string `json:"run,omitempty"`
	Name string `json:"name,omitempty"`
	File string `json:"file,omitempty"`
}

// downloads are the files that can be fetched without a key, by URLs that the server has signed.
type downloads struct{ *Server }

// redirectToArchive responds with a redirect to the archive, which can be fetched without a key.
func (s downloads) redirectToArchive(r *request, path tinker.Path) (response, error) {
	if _, err := r.state.Checkpoints.Get(path); err != nil {
		return response{}, err
	}
	expires := s.options.Clock().Add(archiveTokenTTL)
	url, err := s.signedURL(r, archiveToken{Path: path.String(), Expires: expires.Unix()})
	if err != nil {
		return response{}, err
	}
	resp, err := jsonResponse(http.StatusFound, tinker.ArchiveResponse{URL: url, Expires: &expires})
	resp.header = http.Header{"Location": {url}, "Expires": {expires.UTC().Format(http.TimeFormat)}}
	return resp, err
}

// externalURLs responds with a signed URL for each file of external weights.
func (s downloads) externalURLs(r *request, path tinker.Path) (response, error) {
	files, err := r.state.Checkpoints.ExternalFiles(path)
	if err != nil {
		return response{}, err
	}
	signed := tinker.ExternalWeightsURLs{URLs: map[string]string{}, Expires: s.options.Clock().Add(archiveTokenTTL).UTC()}
	for _, file := range files {
		token := archiveToken{Run: path.Run, Name: path.Name, File: file, Expires: signed.Expires.Unix()}
		if signed.URLs[file], err = s.signedURL(r, token); err != nil {
			return response{}, err
		}
	}
	return jsonResponse(http.StatusOK, signed)
}

// signedURL returns the URL of the archive that a token describes.
func (s downloads) signedURL(r *request, token archiveToken) (string, error) {
	signed, err := s.sign(token)
	if err != nil {
		return "", err
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s/archives/%s", scheme, r.Host, signed), nil
}

// downloadArchive responds with the archive or the file of a signed URL.
func (s downloads) downloadArchive(r *request) (response, error) {
	var link archiveToken
	if err := s.verify(r.PathValue("token"), &link); err != nil || s.options.Clock().Unix() >= link.Expires {
		return response{}, newHTTPError(http.StatusForbidden, "the archive URL is invalid or has expired")
	}
	if link.File != "" {
		path := tinker.Path{Run: link.Run, Kind: tinker.KindExternal, Name: link.Name}
		body, err := r.state.Checkpoints.ExternalFile(path, link.File)
		return response{status: http.StatusOK, contentType: "application/octet-stream", body: body}, err
	}
	path, err := tinker.ParsePath(link.Path)
	if err != nil {
		return response{}, err
	}
	body, err := r.state.Checkpoints.Archive(path)
	return response{status: http.StatusOK, contentType: "application/x-tar", body: body}, err
}
