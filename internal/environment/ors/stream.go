// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	sse "github.com/tmaxmax/go-sse"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// remoteError is an error event: the tool has raised, or the server does not know the task.
type remoteError struct{ text string }

// Error implements error.
func (e *remoteError) Error() string { return "the server reports: " + contract.Truncate(e.text, 300) }

// errSilent is the error of a stream that brought no byte for too long.
var errSilent = errors.New("the stream brought nothing for too long")

// readStream reads a stream up to the event that ends it, and returns the joined text of its events. It calls task
// with the ID of the server's task as soon as the ID arrives. If the stream breaks off, the error is
// io.ErrUnexpectedEOF.
func readStream(body io.Reader, task func(id string)) (string, error) {
	var text strings.Builder
	for event, err := range sse.Read(&unfinished{body}, &sse.ReadConfig{MaxEventSize: maxReply}) {
		if err != nil {
			return "", err
		}
		switch event.Type {
		case "task_id":
			task(strings.TrimSpace(event.Data))
		case "error":
			return "", &remoteError{event.Data}
		case "chunk", "end":
			text.WriteString(event.Data)
			if text.Len() > maxReply {
				return "", errTooLarge
			}
			if event.Type == "end" {
				return text.String(), nil
			}
		}
	}
	return "", io.ErrUnexpectedEOF
}

// unfinished turns the end of a stream into io.ErrUnexpectedEOF, so that an event that broke off is not taken for a
// complete one.
type unfinished struct{ body io.Reader }

// Read implements io.Reader.
func (u *unfinished) Read(p []byte) (int, error) {
	n, err := u.body.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// isStream reports whether a response is a stream of events.
func isStream(response *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// watched is the body of a stream that ends when nothing has come for a time. Comments count: servers send them
// to keep the connection open.
type watched struct {
	io.Reader
	timer *time.Timer
	idle  time.Duration
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.timer.Reset(w.idle)
	return n, err
}

// read sends a request for a stream and reads the stream to its end. It also understands servers that answer with
// JSON instead. The context bounds the whole request. A stream that brings nothing for too long is ended earlier. So
// is a request that gets no headers from a server that is known to answer with streams: such a server sends headers
// at once, while JSON comes only when the tool has ended.
func (b *Backend) read(ctx context.Context, r request, task func(id string)) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(b.pace.idle, func() {
		if b.streams.Load() {
			cancel(errSilent)
		}
	})
	defer silence.Stop()
	response, err := b.send(ctx, r)
	if err != nil {
		return "", silent(ctx, err)
	}
	defer response.Body.Close()
	if !isStream(response) {
		silence.Stop()
		var reply json.RawMessage
		err = decode(r, response.Body, &reply)
		return string(reply), err
	}
	b.streams.Store(true)
	silence.Reset(b.pace.idle)
	body := &watched{Reader: response.Body, timer: silence, idle: b.pace.idle}
	text, err := readStream(body, task)
	if err == nil {
		// The connection serves further requests once the stream has ended, which is soon after its last event.
		body.idle = time.Second
		silence.Reset(body.idle)
		_, _ = io.CopyN(io.Discard, body, 4096)
	}
	return text, silent(ctx, err)
}

// silent returns errSilent for an error that silence has caused, and other errors as they are.
func silent(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// call runs a tool once. Until the server has named its task, call repeats the request only if the tool cannot have
// started. After that, requests with the task's ID continue the call.
func (b *Backend) call(ctx context.Context, r request, call callRequest) (reply callReply, reconnects int, err error) {
	mayRepeat := func(err error) bool {
		if _, ok := errors.AsType[*remoteError](err); ok {
			return false
		}
		return call.Task == "" && wait.IsDialError(err) || call.Task != "" && isTransient(err)
	}
	err = b.repeat(ctx, mayRepeat, func() error {
		if call.Task != "" {
			reconnects++
		}
		r.body = call
		text, err := b.read(ctx, r, func(id string) { call.Task = id })
		if err != nil {
			return err
		}
		reply = callReply{}
		if err := json.Unmarshal([]byte(text), &reply); err != nil {
			return &replyError{fmt.Errorf("decoding the result of tool %q: %w", call.Name, err)}
		}
		return nil
	})
	return reply, reconnects, err
}
