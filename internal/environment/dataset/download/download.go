// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package download reads files over HTTP that may be large: it waits where a server asks for it, tries again after
// errors that may pass, and continues in the middle of a file whose connection broke.
package download

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/progress"
	"github.com/tinker-operator/tinker-operator/internal/stall"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	// maxTries bounds requests that bring nothing, one after the other.
	maxTries = 8
	// longestAskedPause bounds a pause that a server asks for, and longestPause any other.
	longestAskedPause = 2 * time.Minute
	longestPause      = 20 * time.Second
	firstPause        = time.Second
	// maxPage bounds the answers that are read as a whole.
	maxPage = 64 << 20
)

// Client downloads. Its zero value is ready.
type Client struct {
	// HTTP is nil for http.DefaultClient.
	HTTP *http.Client
	// UserAgent is sent with each request.
	UserAgent string
	// Logger receives what is tried again, and how much has arrived; it may be nil.
	Logger *slog.Logger
}

// StatusError reports an answer that is not a file.
type StatusError struct {
	Status int
	URL    string
	// Body is the beginning of the answer's text.
	Body string
}

// Error implements error.
func (e *StatusError) Error() string {
	message := fmt.Sprintf("%s answers %d %s", e.URL, e.Status, http.StatusText(e.Status))
	if e.Body != "" {
		message += ": " + e.Body
	}
	return message
}

// final reports whether a request that failed would fail again.
func final(err error) bool {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Status/100 == 4 && status.Status != http.StatusTooManyRequests &&
			status.Status != http.StatusRequestTimeout
	}
	return errors.Is(err, errChanged)
}

// errChanged says that a file changed while it was read.
var errChanged = errors.New("the file changed during the download")

// Page returns the whole answer to a GET, with its headers. token may be empty.
func (c *Client) Page(ctx context.Context, url, token string) ([]byte, http.Header, error) {
	body, err := c.Open(ctx, url, token)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = body.Close() }() // All that counts has been read.
	data, err := io.ReadAll(io.LimitReader(body, maxPage+1))
	if err == nil && len(data) > maxPage {
		err = fmt.Errorf("%s answers with over %d MiB", url, maxPage>>20)
	}
	return data, body.header, err
}

// Open begins to read a file. token, which may be empty, is sent to the host of the URL alone. The error is a
// *StatusError where a server refuses.
func (c *Client) Open(ctx context.Context, url, token string) (*Body, error) {
	b := &Body{client: c, ctx: ctx, url: url, token: token, Size: -1}
	if err := b.retry(errNotOpen); err != nil {
		return nil, fmt.Errorf("downloading: %w", err)
	}
	return b, nil
}

// Body is a file that is being read. It is used by one goroutine.
type Body struct {
	// Size of the file; -1 if the server does not say it.
	Size int64

	client     *Client
	ctx        context.Context
	url, token string
	header     http.Header
	// stream is the answer that is being read; nil when the next read has to ask for one.
	stream io.ReadCloser
	// offset is how much was read.
	offset int64
	// tries counts requests since the last byte.
	tries int
}

// errNotOpen is the reason of the first request.
var errNotOpen = errors.New("nothing was requested yet")

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	for {
		n, err := b.stream.Read(p)
		b.offset += int64(n)
		if n > 0 {
			b.tries = 0
		}
		switch {
		case err == nil || n > 0 && !errors.Is(err, io.EOF):
			return n, nil
		case errors.Is(err, io.EOF) && (b.Size < 0 || b.offset == b.Size):
			return n, io.EOF
		case errors.Is(err, io.EOF) && b.offset < b.Size:
			err = io.ErrUnexpectedEOF
		}
		if err := b.retry(err); err != nil {
			return n, fmt.Errorf("downloading: %w", err)
		}
		if n > 0 {
			return n, nil
		}
	}
}

// Close ends the download.
func (b *Body) Close() error {
	if b.stream == nil {
		return nil
	}
	return b.stream.Close()
}

// retry requests what is left of the file, until there is an answer, or an error that will stay.
func (b *Body) retry(cause error) error {
	if b.stream != nil {
		// What broke is read no more.
		_ = b.stream.Close()
	}
	for {
		if b.ctx.Err() != nil {
			return context.Cause(b.ctx)
		}
		if final(cause) || b.tries >= maxTries {
			return cause
		}
		if b.tries > 0 {
			pause := pauseBefore(b.tries, cause)
			if b.client.Logger != nil {
				b.client.Logger.Warn("requesting a file again", "url", b.url, "offset", b.offset, "pause", pause.String(), "err",
					cause)
			}
			if err := wait.Sleep(b.ctx, pause); err != nil {
				return err
			}
		}
		b.tries++
		if cause = b.request(); cause == nil {
			return nil
		}
	}
}

// pauseBefore returns how long to wait before a request: what the server asks for, or twice as long each time.
func pauseBefore(tries int, cause error) time.Duration {
	if asked, ok := errors.AsType[*retryAfter](cause); ok {
		return min(asked.pause, longestAskedPause)
	}
	pause := min(firstPause<<(tries-1), longestPause)
	return pause/2 + rand.N(pause/2)
}

// retryAfter is an error with the pause that its server asks for.
type retryAfter struct {
	error
	pause time.Duration
}

// Unwrap returns the error.
func (e *retryAfter) Unwrap() error { return e.error }

// request asks for the file from the offset on.
func (b *Body) request() error {
	ctx, watch := stall.New(b.ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url, http.NoBody)
	if err != nil {
		watch.End()
		return err
	}
	// Bytes are counted as they are stored: a transport that decompresses would hide them.
	request.Header.Set("Accept-Encoding", "identity")
	if b.client.UserAgent != "" {
		request.Header.Set("User-Agent", b.client.UserAgent)
	}
	// The client does not send the token to other hosts that the server redirects to.
	if b.token != "" {
		request.Header.Set("Authorization", "Bearer "+b.token)
	}
	if b.offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", b.offset))
	}
	response, err := cmp.Or(b.client.HTTP, http.DefaultClient).Do(request) //nolint:bodyclose // The stream closes it.
	if err != nil {
		watch.End()
		return watch.Cause(err)
	}
	b.stream = watch.Body(response.Body)
	if err := b.accept(response); err != nil {
		return errors.Join(err, b.stream.Close())
	}
	b.stream = reported{progress.NewReader(b.stream, b.client.Logger, "downloading", path.Base(request.URL.Path), b.offset,
		b.Size), b.stream}
	return nil
}

// reported is a stream whose progress is logged.
type reported struct {
	io.Reader
	io.Closer
}

// accept reads the head of an answer.
func (b *Body) accept(response *http.Response) error {
	switch {
	case response.StatusCode == http.StatusPartialContent && b.offset > 0:
		first, size := contentRange(response.Header.Get("Content-Range"))
		if first != b.offset || b.Size >= 0 && size >= 0 && size != b.Size {
			return errChanged
		}
		return nil
	case response.StatusCode == http.StatusOK:
		if b.header == nil {
			b.header, b.Size = response.Header, response.ContentLength
		} else if response.ContentLength >= 0 && b.Size >= 0 && response.ContentLength != b.Size {
			return errChanged
		}
		// A server without ranges sends the file from its beginning.
		_, err := io.CopyN(io.Discard, b.stream, b.offset)
		return err
	case response.StatusCode == http.StatusRequestedRangeNotSatisfiable && b.offset > 0:
		return errChanged
	}
	text := make([]byte, 256)
	// The text is an explanation, and may be missing.
	n, _ := io.ReadFull(b.stream, text)
	err := &StatusError{Status: response.StatusCode, URL: b.url, Body: firstLine(string(text[:n]))}
	if pause, ok := wait.RetryAfter(response.Header); ok {
		return &retryAfter{error: err, pause: pause}
	}
	return err
}

// firstLine returns the first line of a text that is not a page for a browser.
func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if strings.HasPrefix(text, "<") {
		return ""
	}
	return strings.ToValidUTF8(text, "")
}

// contentRange reads "bytes FIRST-LAST/SIZE"; what it cannot read is -1.
func contentRange(header string) (first, size int64) {
	first, size = -1, -1
	span, total, _ := strings.Cut(strings.TrimPrefix(header, "bytes "), "/")
	from, _, _ := strings.Cut(span, "-")
	if n, err := strconv.ParseInt(from, 10, 64); err == nil {
		first = n
	}
	if n, err := strconv.ParseInt(total, 10, 64); err == nil {
		size = n
	}
	return first, size
}
