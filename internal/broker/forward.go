// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker/tokencount"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	// maxHeld limits a body that is held, and maxBodies all bodies together, in bytes. A larger body counts as one of
	// maxHeld, and goes on while it is parsed. If its route does not permit this, the answer is 413.
	maxHeld   = 16 << 20
	maxBodies = 256 << 20
	// bodyPatience is how long a client may take to send a body.
	bodyPatience = time.Minute
	// passPatience is how long a request and its reply may take. Clients give up sooner.
	passPatience = 10 * time.Minute
	// connectPatience is how long a request waits for its credential.
	connectPatience = 20 * time.Second
	// soonSeconds is the Retry-After of a request that another broker, or this one, can soon pass on.
	soonSeconds = 1
)

// passedHeaders are the headers of requests that go on to the server. Idempotency-Key is not one of them: with it,
// Go's transport would repeat a POST by itself.
var passedHeaders = []string{"Accept", "User-Agent"}

// passedPrefixes begin the names of other headers that go on.
var passedPrefixes = []string{"X-Tinker-", "X-Stainless-"}

// droppedHeaders are the headers of replies that belong to one connection, or to the account.
var droppedHeaders = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Set-Cookie", "Www-Authenticate", tinker.HeaderBrokerCode, tinker.HeaderBrokerForwarded,
}

func trimBase(base string) string { return strings.TrimRight(base, "/") }

// call is a request of a run on its way.
type call struct {
	run    Run
	route  route
	method string
	// path is below the prefix.
	path   string
	header http.Header
	// body is the body of the request, and length its length; large takes the place of body if the body is not held.
	body        []byte
	large       *passing
	length      int64
	contentType string
	encoding    string
	// future is the future that a poll asks for.
	future record
	// object is the body of a request in JSON, and base the base model of the object that the request names.
	object body
	base   string
	// tokens counts the tokens of the body, and forward says that a protobuf body asks for no gradient.
	tokens  int64
	forward bool
	charge  charge
	// answer is the call's answer for metrics.
	answer *Answer
}

// ServeHTTP answers a request, or passes it on.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	answer := Answer{Status: http.StatusOK}
	if err := b.serve(w, r, &answer); err != nil {
		refused, ok := errors.AsType[*refusal](err)
		if !ok {
			refused = refuse(http.StatusInternalServerError, problem.EndpointFailing, "the broker failed: %s", err)
		}
		answer.Status, answer.Code = refused.status, refused.code
		refused.send(w)
	}
	answer.Took = time.Since(began)
	b.config.Observe(answer)
}

func (b *Broker) serve(w http.ResponseWriter, r *http.Request, answer *Answer) error {
	path, ok := strings.CutPrefix(r.URL.Path, prefix)
	if !ok {
		return refuse(http.StatusNotFound, problem.RouteRefused, "the broker does not pass %s %s", r.Method, r.URL.Path)
	}
	if err := b.config.Lease(); err != nil {
		return standby(b.config.Endpoint, err.Error())
	}
	if path == "healthz" && r.Method == http.MethodGet {
		sendJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
		return nil
	}
	run, ok := b.runOf(r.Header.Get(tinker.HeaderAPIKey))
	if !ok {
		return refuse(http.StatusUnauthorized, problem.TokenRefused, "no run of TinkerEndpoint %s has this token",
			b.config.Endpoint)
	}
	if done, err := b.serveItself(w, r, run, path); done || err != nil {
		return err
	}
	found, err := b.find(run, r.Method, path)
	if err != nil {
		return err
	}
	answer.Op = found.op
	if b.isDraining() && found.reply != replyResult {
		return standby(b.config.Endpoint, "it is being replaced")
	}
	c := &call{run: run, route: found, method: r.Method, path: path, header: r.Header, answer: answer}
	release, err := b.receive(w, r, c)
	if err != nil {
		return err
	}
	defer release()
	defer c.charge.end()
	if err := b.admit(r.Context(), c); err != nil {
		return err
	}
	defer b.polling(c)()
	return b.pass(r.Context(), w, c)
}

// serveItself answers the requests that concern the run alone, and reports whether this is one.
func (b *Broker) serveItself(w http.ResponseWriter, r *http.Request, run Run, path string) (bool, error) {
	switch r.Method + " " + path {
	case "POST auth/token":
		return true, refuse(http.StatusNotFound, problem.RouteRefused, "the broker exchanges no tokens")
	case "POST telemetry":
		sendJSON(w, http.StatusOK, []byte(`{"status":"accepted"}`))
	case "GET sessions":
		return true, b.listSessions(w, r, run)
	case "GET training_runs":
		return true, b.listModels(w, r, run)
	case "GET checkpoints":
		return true, b.listCheckpoints(w, r, run)
	case "POST " + tinker.PathCheck:
		return true, b.answerCheck(w, r, run)
	default:
		return false, nil
	}
	return true, nil
}

// receive reads and checks the body of a request, or prepares the check of a large body, which runs while it passes.
// The caller calls release once the request has ended.
func (b *Broker) receive(w http.ResponseWriter, r *http.Request, c *call) (release func(), err error) {
	if r.ContentLength == 0 {
		return func() {}, b.readHeld(r.Context(), c)
	}
	// A body of unknown length counts as one of the largest until it has been read.
	reserved := b.held
	if r.ContentLength > 0 {
		reserved = min(r.ContentLength, b.held)
	}
	if err := b.bodies.Acquire(r.Context(), reserved); err != nil {
		return nil, err
	}
	b.bodyBytes.Add(reserved)
	free := func(n int64) {
		reserved -= n
		b.bodyBytes.Add(-n)
		b.bodies.Release(n)
	}
	if err := b.read(w, r, c); err != nil {
		free(reserved)
		return nil, err
	}
	if c.large == nil {
		free(max(0, reserved-int64(len(c.body)))) // the broker's metadata make a small body larger
		return func() { free(reserved) }, nil
	}
	return func() {
		_ = c.large.Close()
		free(reserved)
	}, nil
}

// read reads a body of up to the limit, and checks it.
func (b *Broker) read(w http.ResponseWriter, r *http.Request, c *call) error {
	c.encoding = r.Header.Get("Content-Encoding")
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	c.contentType = tinker.ContentJSON
	if c.route.large && media == tinker.ContentProtobuf && c.route.data {
		c.contentType = tinker.ContentProtobuf
	}
	control := http.NewResponseController(w)
	if r.ContentLength > b.held {
		return b.passLarge(r.Context(), c, paced{r.Body, control}, r.ContentLength)
	}
	inTime := b.limitReading(control)
	var err error
	if r.ContentLength > 0 {
		c.body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, c.body)
	} else {
		c.body, err = io.ReadAll(io.LimitReader(r.Body, b.held+1))
	}
	if !inTime() {
		err = os.ErrDeadlineExceeded
	}
	switch {
	case err != nil:
		return refuse(http.StatusBadRequest, problem.RequestInvalid, "reading the body: %s", err)
	case int64(len(c.body)) > b.held:
		start := bytes.NewReader(c.body)
		c.body = nil
		return b.passLarge(r.Context(), c, io.MultiReader(start, paced{r.Body, control}), -1)
	}
	return b.readHeld(r.Context(), c)
}

// limitReading ends the reading of a body after some time: a client that sends slowly must not hold the shared memory
// for long. The caller calls inTime once it has read the body. The deadline is not set before the time is over:
// setting it is a message to the connection, which a body that has already arrived does not need. Not every writer
// has deadlines.
func (b *Broker) limitReading(control *http.ResponseController) (inTime func() bool) {
	over := make(chan struct{})
	timer := time.AfterFunc(b.patience, func() {
		defer close(over)
		_ = control.SetReadDeadline(time.Now())
	})
	return func() bool {
		if timer.Stop() {
			return true
		}
		<-over // the writer is not used after its request
		return false
	}
}

// passLarge makes a body go on while it is parsed.
func (b *Broker) passLarge(ctx context.Context, c *call, from io.Reader, length int64) error {
	if !c.route.large {
		return refuse(http.StatusRequestEntityTooLarge, problem.RequestTooLarge,
			"the broker accepts bodies of up to %d bytes for %s", b.held, c.route.op)
	}
	check := func(from io.Reader) error { return b.checkLarge(ctx, c, from) }
	if c.contentType == tinker.ContentProtobuf {
		check = func(from io.Reader) error { return b.checkData(c, from) }
	} else if err := checkEncoding(c.encoding); err != nil {
		return err
	}
	// The end of the body goes on once its cost is recorded.
	checkAndReserve := func(from io.Reader) error {
		if err := check(from); err != nil {
			return err
		}
		return b.reserve(ctx, c)
	}
	c.large, c.length = newPassing(from, checkAndReserve), length
	return nil
}

// readHeld checks a body that is held.
func (b *Broker) readHeld(ctx context.Context, c *call) error {
	c.length = int64(len(c.body))
	if c.contentType == tinker.ContentProtobuf {
		err := b.checkData(c, bytes.NewReader(c.body))
		if _, refused := errors.AsType[*refusal](err); err != nil && !refused {
			return invalid(err)
		}
		return err
	}
	if c.method == http.MethodGet || c.method == http.MethodDelete {
		c.body, c.contentType, c.encoding = nil, "", ""
		return nil
	}
	if err := checkEncoding(c.encoding); err != nil {
		return err
	}
	c.contentType, c.encoding = tinker.ContentJSON, ""
	return b.readJSON(ctx, c)
}

// checkEncoding refuses compressed JSON: the server might not read the same body that the broker decompressed.
func checkEncoding(encoding string) error {
	if encoding != "" && encoding != "identity" {
		return invalid(errors.New("content encoding " + encoding + " is not supported"))
	}
	return nil
}

// readJSON checks a JSON body, and writes the run into it if the request makes a session or model.
func (b *Broker) readJSON(ctx context.Context, c *call) error {
	read, err := readObject(c.body)
	if err != nil {
		return invalid(err)
	}
	if err := b.check(c.run, read); err != nil {
		return err
	}
	c.object = read
	if isBilled(c.route.op) {
		c.tokens = tokencount.Prompt(c.body)
	}
	if c.route.reply == replyFuture || c.route.reply == replySampler {
		c.base = b.baseOf(ctx, read)
	}
	if c.route.reply == replyResult || c.route.op == cancel {
		id, err := read.text("request_id")
		if err != nil {
			return invalid(err)
		}
		c.future, _ = b.owners.get(future, id)
	}
	if !c.route.makes {
		return nil
	}
	if err := b.claim(c.run, c.route.op, &read); err != nil {
		return err
	}
	c.body, err = read.encode()
	return err
}

// pass sends a request to the server and passes the reply on.
func (b *Broker) pass(ctx context.Context, w http.ResponseWriter, c *call) error {
	ctx, cancel := context.WithTimeout(ctx, passPatience)
	defer cancel()
	if c.route.reply == replyResult {
		defer context.AfterFunc(b.drained, cancel)()
		if b.isDraining() {
			return b.tryAgain(w, c)
		}
	}
	resp, credential, err := b.send(ctx, c)
	if err != nil {
		if c.route.reply == replyResult && b.isDraining() {
			return b.tryAgain(w, c)
		}
		return err
	}
	defer resp.Body.Close()
	// A 403 for a publication may forbid the publication alone: it does not show that the key is refused.
	if c.route.op != opPublish || resp.StatusCode != http.StatusForbidden {
		if err := b.checkKey(resp, credential); err != nil {
			return err
		}
	}
	c.answer.Status = resp.StatusCode
	c.charge.answered(resp.StatusCode)
	b.ended(c, resp.StatusCode)
	if resp.StatusCode >= http.StatusBadRequest {
		return b.passError(w, resp, credential)
	}
	return b.passReply(ctx, w, c, resp)
}

// send sends a request once, or twice if the server rejects the JWT, and returns the credential that it sent.
func (b *Broker) send(ctx context.Context, c *call) (*http.Response, string, error) {
	limited, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	by := b.inForce.Load()
	credential, err := by.client.Credential(limited)
	if err != nil {
		return nil, "", b.unconnected(err)
	}
	resp, err := b.sendOnce(ctx, by, c, credential)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, credential, err
	}
	renewed, err := by.client.RenewCredential(limited, credential)
	if err != nil {
		_ = resp.Body.Close()
		return nil, "", b.unconnected(err)
	}
	if renewed == "" {
		return resp, credential, nil
	}
	_ = resp.Body.Close()
	if c.large != nil {
		return nil, "", refuse(http.StatusServiceUnavailable, problem.EndpointFailing,
			"the token of the broker had expired while a large body passed: send it again").after(soonSeconds)
	}
	resp, err = b.sendOnce(ctx, by, c, renewed)
	return resp, renewed, err
}

func (b *Broker) sendOnce(ctx context.Context, by *inForce, c *call, credential string) (*http.Response, error) {
	// A body with GetBody is sent again by the transport where an idle connection was closed before anything was written.
	out, err := http.NewRequestWithContext(ctx, c.method, by.base+prefix+escape(c.path), bytes.NewReader(c.body))
	if err != nil {
		return nil, invalid(err)
	}
	if c.large != nil {
		out.Body, out.GetBody, out.ContentLength = c.large, nil, c.length
	}
	for name, values := range c.header {
		if isPassed(name) {
			out.Header[name] = values
		}
	}
	out.Header.Set(tinker.HeaderAPIKey, credential)
	if c.contentType != "" {
		out.Header.Set("Content-Type", c.contentType)
	}
	if c.encoding != "" {
		out.Header.Set("Content-Encoding", c.encoding)
	}
	resp, err := by.http.Do(out)
	if refused := c.cut(); refused != nil {
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, refused
	}
	if err != nil {
		return nil, b.unanswered(ctx, c, err)
	}
	settle(&b.unreachable)
	if c.large != nil && !c.large.permitted.Load() && resp.StatusCode < http.StatusBadRequest {
		_ = resp.Body.Close()
		return nil, foreign(c, errors.New("it answered before it had the whole request"))
	}
	return resp, nil
}

// unanswered answers for a request to which the server gave no answer. A large body that was cut does not count as
// forwarded, because the server has no whole request.
func (b *Broker) unanswered(ctx context.Context, c *call, err error) error {
	found := outage{code: cmp.Or(transport.CodeOf(err), problem.EndpointUnreachable), message: withoutURL(err)}
	if ctx.Err() == nil {
		b.unreachable.Store(&found)
	}
	return &refusal{
		status: http.StatusBadGateway, code: found.code,
		forwarded: !wait.IsDialError(err) && (c.large == nil || c.large.permitted.Load()),
		detail:    "the broker did not get an answer from the Tinker endpoint: " + found.message,
	}
}

// cut returns the refusal that stopped a large body before its end, or nil.
func (c *call) cut() *refusal {
	if c.large == nil {
		return nil
	}
	return c.large.refused.Load()
}

// escape encodes a path. find has checked that its parts are plain.
func escape(path string) string { return (&url.URL{Path: path}).EscapedPath() }

func isPassed(name string) bool {
	for _, passed := range passedHeaders {
		if name == passed {
			return true
		}
	}
	for _, start := range passedPrefixes {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}
