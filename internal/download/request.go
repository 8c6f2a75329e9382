// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
	"github.com/tinker-operator/tinker-operator/internal/stall"
)

// request asks for the file from the offset on.
func (b *Body) request() error {
	address := b.source.URL
	if b.source.Locate != nil {
		located, err := b.source.Locate(b.ctx)
		if err != nil {
			return final{err}
		}
		address = located
	}
	if !b.continues() {
		b.offset = 0
	}
	ctx, watch := stall.New(b.ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		watch.End()
		return final{fmt.Errorf("the URL of the file is invalid: %w", withoutURL(err))}
	}
	b.base = path.Base(request.URL.Path)
	b.setHeader(request.Header)
	response, err := b.client.http().Do(request) //nolint:bodyclose // The stream closes it.
	if err != nil {
		watch.End()
		return fmt.Errorf("requesting %s%s: %w", request.URL.Host, request.URL.Path, withoutURL(watch.Cause(err)))
	}
	b.stream = watch.Body(response.Body)
	if err := b.accept(request, response); err != nil {
		return errors.Join(err, b.stream.Close())
	}
	b.stream = b.report(b.stream)
	return nil
}

func (b *Body) setHeader(header http.Header) {
	// Bytes are counted as they are stored: a transport that decompresses would hide them.
	header.Set("Accept-Encoding", "identity")
	if b.client.UserAgent != "" {
		header.Set("User-Agent", b.client.UserAgent)
	}
	if b.source.Token != "" {
		header.Set("Authorization", "Bearer "+b.source.Token)
	}
	if b.offset == 0 {
		return
	}
	header.Set("Range", fmt.Sprintf("bytes=%d-", b.offset))
	if b.version != "" {
		header.Set("If-Range", b.version)
	}
}

// http returns a client that sends secrets only to their host: the token, which net/http would also send to
// subdomains, and, as Referer, the URL that redirects, which may be signed.
func (c *Client) http() *http.Client {
	client := *cmp.Or(c.HTTP, http.DefaultClient)
	given := client.CheckRedirect
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if next.URL.Host != via[0].URL.Host || next.URL.Scheme != via[0].URL.Scheme && next.URL.Scheme != "https" {
			next.Header.Del("Authorization")
			next.Header.Del("Referer")
		}
		const mostRedirects = 10
		switch {
		case given != nil:
			return given(next, via)
		case len(via) >= mostRedirects:
			return fmt.Errorf("it redirects %d times", mostRedirects)
		}
		return nil
	}
	return &client
}

// withoutURL removes the URL from an error of net/http and net/url, since its query may be secret.
func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// accept reads the head of an answer.
func (b *Body) accept(request *http.Request, response *http.Response) error {
	switch {
	case response.StatusCode == http.StatusOK:
		return b.acceptWhole(response)
	case response.StatusCode == http.StatusPartialContent && b.offset > 0:
		first, size := contentRange(response.Header.Get("Content-Range"))
		if first != b.offset || b.Size >= 0 && size >= 0 && size != b.Size {
			return b.change()
		}
		if b.header == nil {
			b.header, b.Size = response.Header, size
		}
		return b.checkSize()
	case response.StatusCode == http.StatusRequestedRangeNotSatisfiable && b.offset > 0:
		return b.change()
	}
	refused := httpstatus.From(request, response, b.source.Token)
	if b.source.Advise != nil {
		refused.Advice = b.source.Advise(refused.Status)
	}
	return refused
}

// acceptWhole reads the head of an answer with the whole file.
func (b *Body) acceptWhole(response *http.Response) error {
	version := validator(response.Header)
	if b.begin != nil || b.header == nil {
		b.header, b.Size, b.version, b.offset = response.Header, response.ContentLength, version, 0
		if b.begin != nil {
			if err := b.begin(version); err != nil {
				return final{err}
			}
		}
		return b.checkSize()
	}
	if version != b.version || response.ContentLength >= 0 && b.Size >= 0 && response.ContentLength != b.Size {
		return errChanged
	}
	// A server without ranges sends the file from its beginning.
	_, err := io.CopyN(io.Discard, b.stream, b.offset)
	return err
}

// change returns the error of a file that the server cannot continue. A file on a disk begins anew.
func (b *Body) change() error {
	if b.begin == nil {
		return errChanged
	}
	b.header, b.Size, b.version, b.offset = nil, -1, "", 0
	if err := b.begin(""); err != nil {
		return final{err}
	}
	return errAnew
}

func (b *Body) checkSize() error {
	if b.source.MostBytes > 0 && b.Size > b.source.MostBytes {
		return b.tooLarge()
	}
	return nil
}

// validator returns the validator of a file's exact bytes for If-Range: a strong ETag, or, if there is no ETag, the
// time of the last change, if it was so long before the answer that a later change would have another time.
func validator(header http.Header) string {
	if tag := header.Get("ETag"); tag != "" {
		if strings.HasPrefix(tag, `"`) {
			return tag
		}
		return ""
	}
	changed, err := http.ParseTime(header.Get("Last-Modified"))
	if err != nil {
		return ""
	}
	if answered, err := http.ParseTime(header.Get("Date")); err != nil || answered.Sub(changed) < time.Minute {
		return ""
	}
	return header.Get("Last-Modified")
}

// contentRange reads "bytes FIRST-LAST/SIZE"; a number that it cannot read is -1.
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
