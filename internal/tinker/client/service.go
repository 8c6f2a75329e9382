// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Capabilities asks which base models the server knows.
func (c *Client) Capabilities(ctx context.Context) (tinker.ServerCapabilities, error) {
	return fetch[tinker.ServerCapabilities](ctx, c, get("get_server_capabilities", "get_server_capabilities", nil))
}

// SessionRequest is what a session is noted with.
type SessionRequest struct {
	Tags         []string
	UserMetadata map[string]string
	ProjectID    string
}

// CreateSession makes a session and returns its id. An answer that is lost leaves a session behind that
// nobody uses: sessions have no name to find them by.
func (c *Client) CreateSession(ctx context.Context, r SessionRequest) (string, error) {
	body := tinker.CreateSessionRequest{
		Tags: r.Tags, UserMetadata: r.UserMetadata, SDKVersion: tinker.SDKVersion, ProjectID: r.ProjectID, Type: tinker.TypeCreateSession,
	}
	if body.Tags == nil {
		body.Tags = []string{}
	}
	if body.UserMetadata == nil {
		body.UserMetadata = tinker.Metadata{}
	}
	made, err := post[tinker.CreateSessionResponse](ctx, c, tinker.TypeCreateSession, tinker.TypeCreateSession, body)
	if err == nil && made.Session == "" {
		err = protocolError(tinker.TypeCreateSession, fmt.Errorf("answer has no session_id"))
	}
	return made.Session, err
}

const (
	heartbeatInterval = 10 * time.Second
	heartbeatTimeout  = 10 * time.Second
	// silentBeats is how many heartbeats may fail before it is worth a warning: two minutes.
	silentBeats = 12
)

// Heartbeat keeps a session alive. It is sent once; an error of CategoryNotFound or CategoryPromiseLost
// says that the session is gone.
func (c *Client) Heartbeat(ctx context.Context, session string) error {
	ask, err := postJSON(tinker.TypeSessionHeartbeat, tinker.TypeSessionHeartbeat, tinker.SessionHeartbeat{Session: session, Type: tinker.TypeSessionHeartbeat})
	if err != nil {
		return err
	}
	if _, err := c.connect(ctx); err != nil {
		return err
	}
	ask.timeout = heartbeatTimeout
	_, err = c.exchange(ctx, ask)
	return err
}

// KeepAlive sends a heartbeat every ten seconds until ctx ends, or until the server says that the session
// is gone: then it calls lost, which may be nil, and returns. Other failures are no reason to stop. It
// blocks, so run it in a goroutine.
func (c *Client) KeepAlive(ctx context.Context, session string, lost func(error)) {
	failures := 0
	for sleep(ctx, heartbeatInterval) == nil {
		err := c.Heartbeat(ctx, session)
		switch CategoryFrom(err) {
		case "":
			failures = 0
			continue
		case tinker.CategoryNotFound, tinker.CategoryPromiseLost:
			if lost != nil {
				lost(err)
			}
			return
		}
		if failures++; failures%silentBeats == 0 && ctx.Err() == nil {
			c.log.Warn("session heartbeats fail", "session", session, "failures", failures, "error", err)
		}
	}
}

// CreateSamplingSession makes the sampling session (session, seq), or finds it, and returns its id. It
// samples from modelPath, or from baseModel if that is empty. The server gives the session that has the
// number, whatever it samples from: a number must not stand for two sets of weights.
func (c *Client) CreateSamplingSession(ctx context.Context, session string, seq int64, modelPath, baseModel string) (string, error) {
	made, err := post[tinker.CreateSamplingSessionResponse](ctx, c, tinker.TypeCreateSamplingSession, tinker.TypeCreateSamplingSession,
		tinker.CreateSamplingSessionRequest{
			Session: session, Seq: seq, BaseModel: baseModel, ModelPath: modelPath, Type: tinker.TypeCreateSamplingSession,
		})
	if err == nil && made.SamplingSession == "" {
		err = protocolError(tinker.TypeCreateSamplingSession, fmt.Errorf("answer has no sampling_session_id"))
	}
	return made.SamplingSession, err
}

// ModelInfo asks what a model is.
func (c *Client) ModelInfo(ctx context.Context, modelID string) (tinker.ModelInfo, error) {
	return post[tinker.ModelInfo](ctx, c, tinker.TypeGetInfo, tinker.TypeGetInfo, tinker.ModelRequest{ModelID: modelID, Type: tinker.TypeGetInfo})
}

const opSample = "asample"

// Sample draws samples and waits for them. Posted again with the same session and number, after whatever
// failure, it gives the same samples. CategoryPromiseLost says that they are gone for good and are to be
// asked for under another number.
func (c *Client) Sample(ctx context.Context, r tinker.SampleRequest) (tinker.SampleResult, error) {
	r.Type = tinker.TypeSample
	ask, err := postJSON(opSample, opSample, r)
	if err != nil {
		return tinker.SampleResult{}, err
	}
	ask.header = map[string]string{"X-Tinker-Sampling-Backpressure": "1"}
	p, err := c.submit(ctx, ask)
	if err != nil {
		return tinker.SampleResult{}, err
	}
	p.accept = tinker.ContentProtobuf
	return redeem(ctx, c, p, decodeProtobuf(opSample, func(body []byte) (tinker.SampleResult, error) {
		result, err := tinker.DecodeSample(body)
		if err == nil && len(result.Sequences) != r.NumSamples {
			err = fmt.Errorf("result has %d samples, not %d", len(result.Sequences), r.NumSamples)
		}
		return result, err
	}))
}

// ComputeLogprobs gives the log-probability of each token after those before it; that of the first is NaN.
// seq is the number of the request within the sampling session, as for Sample.
func (c *Client) ComputeLogprobs(ctx context.Context, samplingSession string, seq int64, tokens []int32) ([]float32, error) {
	params := tinker.DefaultSampling()
	params.MaxTokens = new(1)
	result, err := c.Sample(ctx, tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text(tokens), SamplingParams: params,
		SamplingSession: samplingSession, SeqID: &seq, PromptLogprobs: true,
	})
	if err == nil && len(result.PromptLogprobs) != len(tokens) {
		err = protocolError(opSample, fmt.Errorf("result has %d log-probabilities of %d tokens", len(result.PromptLogprobs), len(tokens)))
	}
	if err != nil {
		return nil, err
	}
	return result.PromptLogprobs, nil
}
