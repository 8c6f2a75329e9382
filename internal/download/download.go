// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package download reads files over HTTP that may be large: it waits if a server asks for it, tries again after
// transient errors, and continues in the middle of a file after a connection broke. A later call continues a file on
// a disk, too.
package download

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
	"github.com/tinker-operator/tinker-operator/internal/progress"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	// maxTries bounds the requests in a row that bring nothing, unless a client has another bound.
	maxTries = 8
	// longestAskedPause bounds a pause that a server asks for.
	longestAskedPause = 2 * time.Minute
	// maxPage bounds the answers that are read as a whole.
	maxPage = 64 << 20
)

// pauses are the pauses between requests that bring nothing: a second to 20 s, shorter by up to a half.
var pauses = wait.Backoff{First: time.Second, Longest: 20 * time.Second, Jitter: -0.5}

// Client downloads files. The zero value is ready to use.
type Client struct {
	// HTTP sends the requests. Defaults to http.DefaultClient.
	HTTP *http.Client
	// UserAgent is sent with each request.
	UserAgent string
	// Tries bounds the requests in a row that bring nothing. Defaults to 8.
	Tries int
	// Logger receives the repeated requests, and how much has arrived; it may be nil.
	Logger *slog.Logger
	// Report receives what people should know of a download that takes several requests; it may be nil.
	Report func(message string)
}

// Source is the source of a file.
type Source struct {
	// URL of the file.
	URL string
	// Locate, if not nil, returns the URL in place of the field URL. It is called for each request, since the URL
	// expires: a request that is answered with 403 is sent again, to a new URL. An error of Locate ends a download.
	Locate func(ctx context.Context) (string, error)
	// Token, which may be empty, is sent only to the host of the URL.
	Token string
	// Name names the file for people. If it is empty, it is the last part of the URL's path.
	Name string
	// Advise, if not nil, returns advice for a person about an answer that is not a success.
	Advise func(status int) string
	// MostBytes bounds the size of the file; 0 means no bound.
	MostBytes int64
}

// Page returns the whole answer to a GET, with its headers. token may be empty.
func (c *Client) Page(ctx context.Context, url, token string) ([]byte, http.Header, error) {
	body, err := c.Open(ctx, Source{URL: url, Token: token, MostBytes: maxPage})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = body.Close() }() // All that counts has been read.
	data, err := io.ReadAll(body)
	return data, body.header, err
}

// Open begins to read a file. The error is a *httpstatus.Error if a server refuses the request.
func (c *Client) Open(ctx context.Context, source Source) (*Body, error) {
	b := c.body(ctx, source)
	if err := b.retry(errNotOpen); err != nil {
		return nil, fmt.Errorf("downloading: %w", err)
	}
	return b, nil
}

func (c *Client) body(ctx context.Context, source Source) *Body {
	return &Body{client: c, ctx: ctx, source: source, Size: -1}
}

// Body is a file that is being read. It is used by one goroutine.
type Body struct {
	// Size of the file; -1 if the server does not say it.
	Size int64

	client *Client
	ctx    context.Context
	source Source
	header http.Header
	// base is the last part of the path of the last URL.
	base string
	// version is the validator of the bytes that were read, or empty if the server names none.
	version string
	// stream is the answer that is being read; nil when the next read has to ask for one.
	stream io.ReadCloser
	// offset is how much was read.
	offset int64
	// tries counts requests since the last byte that counts.
	tries int
	// begin, if not nil, discards the bytes that were read, and begins a version of the file anew.
	begin func(version string) error
}

var (
	// errNotOpen is the reason of the first request.
	errNotOpen = errors.New("nothing was requested yet")
	// errChanged says that a file changed while it was read.
	errChanged = final{errors.New("the file changed during the download")}
	// errAnew says that a file is begun anew.
	errAnew = errors.New("the server cannot continue the download, which begins anew")
)

// final is an error that another request would have, too.
type final struct{ error }

// Unwrap returns the error.
func (e final) Unwrap() error { return e.error }

// mayPass reports whether a request that failed may succeed when it is sent again.
func (b *Body) mayPass(err error) bool {
	if status, ok := errors.AsType[*httpstatus.Error](err); ok {
		switch status.Status {
		case http.StatusRequestTimeout, http.StatusTooManyRequests:
			return true
		case http.StatusForbidden:
			return b.source.Locate != nil
		}
		return status.Status >= http.StatusInternalServerError
	}
	_, isFinal := errors.AsType[final](err)
	return !isFinal
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	for {
		n, err := b.stream.Read(p)
		if err := b.count(n); err != nil {
			return 0, err
		}
		switch {
		case errors.Is(err, io.EOF) && (b.Size < 0 || b.offset == b.Size):
			return n, io.EOF
		case n > 0 || err == nil:
			return n, nil // The next read finds an error again.
		case errors.Is(err, io.EOF) && b.offset < b.Size:
			err = io.ErrUnexpectedEOF
		}
		if err := b.retry(err); err != nil {
			return 0, fmt.Errorf("downloading: %w", err)
		}
	}
}

// count counts bytes that were read, and returns an error if there are too many.
func (b *Body) count(n int) error {
	b.offset += int64(n)
	if n > 0 && b.continues() {
		b.tries = 0
	}
	if b.source.MostBytes > 0 && b.offset > b.source.MostBytes {
		return b.tooLarge()
	}
	return nil
}

// continues reports whether a next request continues after the bytes that were read. A file on a disk is only continued
// if the server names its version.
func (b *Body) continues() bool { return b.begin == nil || b.version != "" }

func (b *Body) tooLarge() error {
	return final{fmt.Errorf("downloading: the file has over %d MiB, which is its bound", b.source.MostBytes>>20)}
}

// Close ends the download.
func (b *Body) Close() error {
	if b.stream == nil {
		return nil
	}
	return b.stream.Close()
}

// retry requests the rest of the file, until there is an answer, an error that is final, or no try left.
func (b *Body) retry(cause error) error {
	if b.stream != nil {
		// A broken stream is not read again.
		_ = b.stream.Close()
	}
	for {
		switch {
		case !b.mayPass(cause):
			return cause
		case b.ctx.Err() != nil:
			return context.Cause(b.ctx)
		case b.tries >= cmp.Or(b.client.Tries, maxTries):
			return cause
		}
		if b.tries > 0 {
			pause := pauseBefore(b.tries, cause)
			b.client.tell(b, cause, pause)
			if err := wait.Sleep(b.ctx, pause); err != nil {
				return err
			}
		} else if !errors.Is(cause, errNotOpen) {
			b.client.tell(b, cause, 0)
		}
		b.tries++
		if cause = b.request(); cause == nil {
			return nil
		}
	}
}

// tell logs and reports that a file is requested again.
func (c *Client) tell(b *Body, cause error, pause time.Duration) {
	if c.Logger != nil {
		c.Logger.Warn("requesting a file again", "file", b.name(), "offset", b.offset, "pause", pause.String(), "err",
			cause)
	}
	if c.Report != nil {
		c.Report(fmt.Sprintf("after %d bytes: %v; trying again", b.offset, cause))
	}
}

// pauseBefore returns the pause before a request: the pause that the server asks for, or a longer one each time.
func pauseBefore(tries int, cause error) time.Duration {
	if refused, ok := errors.AsType[*httpstatus.Error](cause); ok {
		if asked, ok := wait.RetryAfter(refused.Header); ok {
			return min(asked, longestAskedPause)
		}
	}
	return pauses.After(tries)
}

// name returns the name of the file for people.
func (b *Body) name() string { return cmp.Or(b.source.Name, b.base) }

// reported is a stream whose progress is logged.
type reported struct {
	io.Reader
	io.Closer
}

// report returns a stream whose progress is logged.
func (b *Body) report(stream io.ReadCloser) io.ReadCloser {
	return reported{progress.NewReader(stream, b.client.Logger, "downloading", b.name(), b.offset, b.Size), stream}
}
