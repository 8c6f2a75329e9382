// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive downloads archives of checkpoints, and takes adapters in the format of PEFT out of them.
package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/stall"
)

// maxAttempts limits how many attempts in a row bring nothing.
const maxAttempts = 5

// Fetcher downloads files.
type Fetcher struct {
	// HTTP sends the requests, without the API key.
	HTTP *http.Client
	// Delay is the pause before the second attempt, which grows with each.
	Delay time.Duration
	// Report receives what people should know of a download that takes several attempts.
	Report func(message string)
}

// StatusError reports that the server does not serve the file.
type StatusError struct{ Status int }

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the server responds with %d %s", e.Status, http.StatusText(e.Status))
}

// mayPass reports whether another attempt may succeed: 403 is the status of a URL that has expired.
func (e *StatusError) mayPass() bool {
	switch e.Status {
	case http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= http.StatusInternalServerError
}

// errCut reports that a connection ended before the file did.
var errCut = errors.New("the connection ended before the file did")

// Fetch downloads a file to name, and returns its SHA-256. The function locate returns the URL, anew for each attempt.
// What an earlier call left under the name is continued if the server has named a strong ETag and still serves that
// version.
func (f Fetcher) Fetch(ctx context.Context, locate func(context.Context) (string, error), name string) (string, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer file.Close()
	d := &download{Fetcher: f, file: file}
	digest, err := d.fetch(ctx, locate)
	if err != nil && d.tag == "" {
		return "", errors.Join(err, Discard(name)) // Nothing of it could be continued.
	}
	return digest, err
}

// fetch makes attempts until one succeeds or no other may.
func (d *download) fetch(ctx context.Context, locate func(context.Context) (string, error)) (string, error) {
	if err := d.restore(); err != nil {
		return "", err
	}
	for failures := 0; ; {
		before := d.size
		location, err := locate(ctx)
		if err != nil {
			return "", err
		}
		err = d.attempt(ctx, location)
		if err == nil {
			return d.finish()
		}
		if d.size > before && d.tag != "" {
			failures = 0
		}
		failures++
		var refused *StatusError
		if ctx.Err() != nil || failures >= maxAttempts || (errors.As(err, &refused) && !refused.mayPass()) || errors.Is(err,
			errLocal) {
			return "", err
		}
		d.Report(fmt.Sprintf("after %d bytes: %v; trying again", d.size, err))
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(time.Duration(failures) * d.Delay):
		}
	}
}

// download is a file of which size bytes were received.
type download struct {
	Fetcher
	file *os.File
	size int64
	// tag is the strong ETag of what was received, or empty.
	tag    string
	header http.Header
}

// errLocal reports that the file cannot be written.
var errLocal = errors.New("writing the download")

// tagFile returns the name of the file that has the ETag of a download.
func tagFile(name string) string { return name + ".etag" }

// restore finds what an earlier call has left.
func (d *download) restore() error {
	tag, err := os.ReadFile(tagFile(d.file.Name()))
	if err != nil {
		return d.reset("")
	}
	d.tag = string(tag)
	d.size, err = d.file.Seek(0, io.SeekEnd)
	return err
}

// reset begins anew with a version of the file.
func (d *download) reset(tag string) error {
	d.size, d.tag = 0, tag
	_, err := d.file.Seek(0, io.SeekStart)
	if err = errors.Join(err, d.file.Truncate(0)); err != nil {
		return fmt.Errorf("%w: %w", errLocal, err)
	}
	if tag == "" {
		err = removeIfExists(tagFile(d.file.Name()))
	} else {
		err = atomicfile.Write(tagFile(d.file.Name()), 0o600, []byte(tag))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errLocal, err)
	}
	return nil
}

// attempt requests what is missing.
func (d *download) attempt(ctx context.Context, location string) error {
	watched, watch := stall.New(ctx)
	defer watch.End()
	request, err := http.NewRequestWithContext(watched, http.MethodGet, location, nil)
	if err != nil {
		return fmt.Errorf("%w: the URL of the archive is invalid", &StatusError{http.StatusBadRequest})
	}
	// A compressed response would have other bytes than those that ranges and digests count.
	request.Header.Set("Accept-Encoding", "identity")
	if d.size > 0 && d.tag != "" {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.size))
		request.Header.Set("If-Range", d.tag)
	}
	response, err := d.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("connecting: %w", hideURL(watch.Cause(err)))
	}
	defer response.Body.Close()
	body := watch.Body(response.Body)
	if err := d.prepare(response); err != nil {
		return err
	}
	n, err := io.Copy(localWriter{d.file}, body)
	d.size += n
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errCut
	case err != nil:
		return fmt.Errorf("receiving the file: %w", err)
	}
	return nil
}

// prepare positions the file for the body of a response.
func (d *download) prepare(response *http.Response) error {
	d.header = response.Header
	switch {
	case response.StatusCode == http.StatusOK:
		return d.reset(strongTag(response.Header))
	case response.StatusCode == http.StatusPartialContent && strings.HasPrefix(response.Header.Get("Content-Range"),
		"bytes "+strconv.FormatInt(d.size, 10)+"-"):
		return nil
	case response.StatusCode == http.StatusRequestedRangeNotSatisfiable, response.StatusCode == http.StatusPartialContent:
		if err := d.reset(""); err != nil {
			return err
		}
		return fmt.Errorf("the server cannot continue the download, which begins anew")
	}
	return &StatusError{response.StatusCode}
}

// strongTag returns the ETag that names the exact bytes, or "".
func strongTag(header http.Header) string {
	if tag := header.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	return ""
}

// localWriter marks the errors of a file, of which another attempt would have the same.
type localWriter struct{ file *os.File }

// Write implements io.Writer.
func (w localWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	if err != nil {
		err = fmt.Errorf("%w: %w", errLocal, err)
	}
	return n, err
}
