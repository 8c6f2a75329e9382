// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker/tokencount"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

const (
	// withheld is how much of a large body waits at the broker until all of it is permitted, in bytes.
	withheld = 32 << 10
	// maxField limits the values of a large JSON body that are checked, in bytes. Longer texts name no object.
	maxField = 4 << 10
	// chunkPatience is how long a client may take for each part of a large body.
	chunkPatience = 30 * time.Second
)

// passing is a large body that goes on while it is parsed. It ends with an error before its last bytes unless all of
// it is permitted: the server neither receives nor executes a whole request that is not permitted.
type passing struct {
	from io.Reader
	// feed passes the bytes that were read to the parser, whose verdict follows.
	feed    *io.PipeWriter
	verdict chan error
	// buffer has the bytes that were read and have not gone on. After them the body ends with err, which is io.EOF if
	// the body is permitted.
	buffer []byte
	err    error
	// permitted and refused tell other goroutines the verdict.
	permitted atomic.Bool
	refused   atomic.Pointer[refusal]
}

// newPassing starts the parser of a body. The caller closes the body.
func newPassing(from io.Reader, check func(io.Reader) error) *passing {
	reader, writer := io.Pipe()
	p := &passing{from: from, feed: writer, verdict: make(chan error, 1)}
	go func() {
		err := check(reader)
		_ = reader.Close() // what follows a refusal is not read
		p.verdict <- err
	}()
	return p
}

// Read implements io.Reader.
func (p *passing) Read(out []byte) (int, error) {
	for p.err == nil && len(p.buffer) <= withheld {
		p.fill()
	}
	ready := len(p.buffer) - withheld
	if p.err != nil {
		if !errors.Is(p.err, io.EOF) {
			return 0, p.err
		}
		ready = len(p.buffer)
		if ready == 0 {
			return 0, io.EOF
		}
	}
	n := copy(out, p.buffer[:ready])
	p.buffer = p.buffer[n:]
	return n, nil
}

// fill reads more of the body and gives it to the parser.
func (p *passing) fill() {
	next := make([]byte, len(p.buffer), 2*withheld)
	copy(next, p.buffer)
	n, err := p.from.Read(next[len(next):cap(next)])
	p.buffer = next[:len(next)+n]
	if _, stopped := p.feed.Write(p.buffer[len(next):]); stopped != nil {
		p.conclude(<-p.verdict, stopped)
		return
	}
	switch {
	case errors.Is(err, io.EOF):
		_ = p.feed.Close()
		p.conclude(<-p.verdict, io.EOF)
	case err != nil:
		_ = p.feed.CloseWithError(err)
		p.conclude(refuse(http.StatusBadRequest, problem.RequestInvalid, "reading the body: %s", err), err)
	}
}

// conclude ends the body with the verdict, or with end if the verdict is nil.
func (p *passing) conclude(verdict, end error) {
	if verdict == nil {
		p.err = end
		p.permitted.Store(errors.Is(end, io.EOF))
		return
	}
	p.err = verdict
	refused, ok := errors.AsType[*refusal](verdict)
	if !ok {
		refused = invalid(verdict)
	}
	p.refused.Store(refused)
}

// Close ends the parser.
func (p *passing) Close() error { return p.feed.CloseWithError(http.ErrBodyReadAfterClose) }

// paced reads a body whose client must not pause for long.
type paced struct {
	from    io.Reader
	control *http.ResponseController
}

// Read implements io.Reader.
func (p paced) Read(out []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(chunkPatience)) // not every writer has deadlines
	return p.from.Read(out)
}

// checkLarge checks a JSON body that is not held, and counts its tokens.
func (b *Broker) checkLarge(ctx context.Context, c *call, from io.Reader) error {
	text := tokencount.NewText()
	read, err := scanObject(io.TeeReader(from, text), maxField)
	if err != nil {
		return err
	}
	c.object, c.tokens = read, text.Tokens()
	if err := b.check(c.run, read); err != nil {
		return err
	}
	c.base = b.baseOf(ctx, read)
	return nil
}

// checkData checks a protobuf body of forward_backward, and counts its tokens.
func (b *Broker) checkData(c *call, from io.Reader) error {
	data := tokencount.NewData()
	id, err := readModelID(c.encoding, from, data)
	if err == nil {
		err = data.Err()
	}
	if err != nil {
		return err
	}
	made, _ := b.owners.get(model, id)
	c.tokens, c.forward, c.base = data.Tokens(), data.ForwardOnly(), made.Base
	return b.own(c.run, model, id)
}
