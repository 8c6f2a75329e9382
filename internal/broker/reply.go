// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

const (
	// maxReply limits a reply that the broker reads before it passes, in bytes.
	maxReply = 4 << 20
	// maxErrorBody limits the part of an error that passes, in bytes.
	maxErrorBody = 64 << 10
	// maxEnvelope is the size in bytes from which a reply to a poll is certainly a result. A shorter reply may say that
	// there is no result yet.
	maxEnvelope = 64 << 10
)

// passError passes an error of the server on, without the secrets in it.
func (b *Broker) passError(w http.ResponseWriter, resp *http.Response, credential string) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return interrupted(err)
	}
	passHeaders(w, resp)
	text = []byte(redact(string(text), credential, b.inForce.Load().APIKey))
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(text)
	return nil
}

// passReply records the objects that a reply names, and passes it on.
func (b *Broker) passReply(ctx context.Context, w http.ResponseWriter, c *call, resp *http.Response) error {
	switch c.route.reply {
	case replyPlain:
		if c.route.op == opArchive {
			locate(resp)
		}
		stream(w, resp, resp.Body)
		return nil
	case replyResult:
		return b.passResult(ctx, w, c, resp)
	}
	encoded, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return interrupted(err)
	}
	if len(encoded) > maxReply {
		return foreign(c, errors.New("it is too large"))
	}
	switch c.route.reply {
	case replySession, replySampler, replyFuture:
		made, err := b.made(c, encoded)
		if err != nil {
			return foreign(c, err)
		}
		if c.route.reply == replyFuture {
			c.charge.accept(made[0].ID)
		}
		if err := b.record(ctx, made); err != nil {
			return err
		}
	default:
		if encoded, err = b.rewrite(c.route.reply, encoded); err != nil {
			return foreign(c, err)
		}
	}
	passHeaders(w, resp)
	sendBytes(w, resp.StatusCode, encoded)
	return nil
}

// made returns the records of the objects that a reply names.
func (b *Broker) made(c *call, encoded []byte) ([]record, error) {
	var reply struct {
		Session string `json:"session_id"`
		Sampler string `json:"sampling_session_id"`
		Future  string `json:"request_id"`
		Model   string `json:"model_id"`
	}
	if err := json.Unmarshal(encoded, &reply); err != nil {
		return nil, err
	}
	var records []record
	add := func(of kind, id, op string) {
		if id != "" {
			records = append(records, record{Kind: of, ID: id, Owner: c.run.Owner, Op: op, Base: c.base,
				Made: b.config.Now().Unix()})
		}
	}
	switch c.route.reply {
	case replySession:
		add(session, reply.Session, "")
	case replySampler:
		add(sampler, reply.Sampler, "")
	case replyFuture:
		add(future, reply.Future, c.route.op)
	}
	if len(records) == 0 {
		return nil, errors.New("it names no object")
	}
	if c.route.op == tinker.TypeCreateModel {
		add(model, reply.Model, "")
	}
	return records, nil
}

// record stores records. The reply may pass once record has returned.
func (b *Broker) record(ctx context.Context, records []record) error {
	if len(records) == 0 {
		return nil
	}
	err := b.config.Lease()
	if err == nil {
		err = b.owners.add(ctx, records...)
	}
	if err != nil {
		return &refusal{status: http.StatusServiceUnavailable, code: problem.RecordsBlocked, forwarded: true,
			retryAfter: soonSeconds, detail: "the broker cannot record an object of the run: " + err.Error()}
	}
	return nil
}

// makers are the operations whose results name new objects.
var makers = []string{tinker.TypeCreateModel, tinker.TypeLoadWeights, tinker.TypeSaveSampler}

// passResult passes a result on, or the answer that there is none yet.
func (b *Broker) passResult(ctx context.Context, w http.ResponseWriter, c *call, resp *http.Response) error {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media == tinker.ContentProtobuf {
		b.streamResult(w, c, resp, media, resp.Body)
		return nil
	}
	start, err := io.ReadAll(io.LimitReader(resp.Body, maxEnvelope))
	if err != nil {
		return interrupted(err)
	}
	if len(start) == maxEnvelope {
		b.streamResult(w, c, resp, media, io.MultiReader(bytes.NewReader(start), resp.Body))
		return nil
	}
	state, made, err := b.readResult(c, start)
	if err != nil {
		return foreign(c, err)
	}
	if err := b.record(ctx, made); err != nil {
		return err
	}
	from, result := counted(c, media, bytes.NewReader(start))
	stream(w, resp, from)
	if state != noResult {
		b.delivered(c, state.outcome(), result)
	}
	return nil
}

// streamResult passes on a reply that is certainly a result.
func (b *Broker) streamResult(w http.ResponseWriter, c *call, resp *http.Response, media string, from io.Reader) {
	from, result := counted(c, media, from)
	stream(w, resp, from)
	b.delivered(c, meter.Delivered, result)
}

// state is the state of a future according to an answer to a poll.
type state int

const (
	noResult state = iota
	someResult
	failedResult
)

func (s state) outcome() meter.Outcome {
	if s == failedResult {
		return meter.Failed
	}
	return meter.Delivered
}

// readResult reads a short answer to a poll: whether it is a result, and the objects that the operation made for the
// run.
func (b *Broker) readResult(c *call, encoded []byte) (is state, made []record, err error) {
	var result struct {
		Error   any    `json:"error"`
		Type    string `json:"type"`
		Status  string `json:"status"`
		Model   string `json:"model_id"`
		Sampler string `json:"sampling_session_id"`
	}
	if err := json.Unmarshal(encoded, &result); err != nil {
		return noResult, nil, err
	}
	if result.Type == tinker.TypeTryAgain || result.Status == tinker.StatusCompleteMetadata {
		return noResult, nil, nil
	}
	if result.Error != nil {
		return failedResult, nil, nil
	}
	if !slices.Contains(makers, c.future.Op) {
		return someResult, nil, nil
	}
	for of, id := range map[kind]string{model: result.Model, sampler: result.Sampler} {
		if id != "" {
			made = append(made, record{Kind: of, ID: id, Owner: c.run.Owner, Base: c.future.Base, Made: b.config.Now().Unix()})
		}
	}
	return someResult, made, nil
}

// rewrite returns an answer of the server as runs see it.
func (b *Broker) rewrite(of reply, encoded []byte) ([]byte, error) {
	switch of {
	case replyConfig:
		// ServerConfig has the fields whose routes the broker knows. Other fields do not pass.
		var config tinker.ServerConfig
		if err := json.Unmarshal(encoded, &config); err != nil {
			return nil, err
		}
		config.PJWTAuthEnabled, config.CredentialDefaultSource = false, "api_key"
		return json.Marshal(config)
	case replyDynamicConfig:
		var config tinker.DynamicConfig
		if err := json.Unmarshal(encoded, &config); err != nil {
			return nil, err
		}
		return json.Marshal(config)
	}
	var capabilities tinker.ServerCapabilities
	if err := json.Unmarshal(encoded, &capabilities); err != nil {
		return nil, err
	}
	capabilities.SupportedModels = slices.DeleteFunc(capabilities.SupportedModels, func(m tinker.SupportedModel) bool {
		return !b.mayUseModel(m.ModelName)
	})
	return json.Marshal(capabilities)
}

// tryAgain answers a long poll while the broker is ending.
func (b *Broker) tryAgain(w http.ResponseWriter, c *call) error {
	encoded, err := json.Marshal(tinker.TryAgain{Type: tinker.TypeTryAgain, RequestID: c.future.ID,
		QueueState: tinker.QueueActive})
	if err != nil {
		return err
	}
	w.Header().Set(tinker.HeaderBrokerCode, string(problem.BrokerDraining))
	w.Header().Set(tinker.HeaderBrokerForwarded, "false")
	w.Header().Set("Connection", "close")
	sendJSON(w, http.StatusOK, encoded)
	return nil
}

// interrupted answers for a reply that broke off.
func interrupted(err error) error {
	return &refusal{status: http.StatusBadGateway, code: problem.EndpointUnreachable, forwarded: true,
		detail: "the answer of the Tinker endpoint broke off: " + err.Error()}
}

// foreign answers for a reply of the server that does not follow the API.
func foreign(c *call, err error) error {
	return &refusal{status: http.StatusBadGateway, code: problem.EndpointFailing, forwarded: true,
		detail: "the Tinker endpoint answered " + c.route.op + " in a form that the broker does not know: " + err.Error()}
}

// locate completes the address of an archive if the server gave it without a host: the run would look for the archive
// at the broker.
func locate(resp *http.Response) {
	if place, err := resp.Location(); err == nil {
		resp.Header.Set("Location", place.String())
	}
}

func passHeaders(w http.ResponseWriter, resp *http.Response) {
	maps.Copy(w.Header(), resp.Header)
	for _, name := range droppedHeaders {
		w.Header().Del(name)
	}
}

// stream passes a reply on as it comes. If the reply breaks off, stream panics with http.ErrAbortHandler. This ends the
// connection, so that the client does not take a part for the whole.
func stream(w http.ResponseWriter, resp *http.Response, from io.Reader) {
	passHeaders(w, resp)
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(w, from); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func sendBytes(w http.ResponseWriter, status int, encoded []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(encoded)))
	w.WriteHeader(status)
	_, _ = w.Write(encoded)
}
