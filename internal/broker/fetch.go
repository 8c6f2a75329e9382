// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/broker/meter"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	// countEvery is how often grants are corrected, and fetchEvery how often unpolled results are looked for.
	countEvery = time.Second
	fetchEvery = 10 * time.Second
	// fetchPatience is how long a result has to stay unpolled before the broker fetches it, because it is billed.
	fetchPatience = 5 * time.Minute
	// fetchTimeout bounds the request for a result, which the server answers once the result is ready.
	fetchTimeout = 5 * time.Minute
	// maxFetches is how many results are fetched at once.
	maxFetches = 8
)

// Count corrects grants, and fetches the results that no run asks for, until ctx ends.
func (b *Broker) Count(ctx context.Context) {
	if b.config.Gate != nil && b.config.Meter != nil {
		b.config.Gate.Resume(b.config.Meter.Unfinished())
	}
	fetched := b.config.Now()
	for wait.Sleep(ctx, countEvery) == nil {
		if b.config.Gate != nil {
			b.config.Gate.Tick()
		}
		if b.config.Meter == nil {
			continue
		}
		b.config.Meter.Tick()
		if b.config.Now().Sub(fetched) >= fetchEvery {
			fetched = b.config.Now()
			b.FetchUnpolled(ctx)
		}
	}
}

// FetchUnpolled asks for each result that no run has asked for within the last five minutes, and counts the result if
// the server has it.
func (b *Broker) FetchUnpolled(ctx context.Context) {
	if b.config.Lease() != nil {
		return
	}
	var fetches errgroup.Group
	fetches.SetLimit(maxFetches)
	for _, unpolled := range b.config.Meter.Unpolled(fetchPatience) {
		fetches.Go(func() error {
			if err := b.fetch(ctx, unpolled); err != nil {
				b.config.Logger.Warn("a result that is billed is not known yet", "endpoint", b.config.Endpoint,
					"future", unpolled.ID, "err", err)
			}
			return nil
		})
	}
	_ = fetches.Wait()
}

// fetch asks for one result.
func (b *Broker) fetch(ctx context.Context, of meter.Unpolled) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	asked, err := json.Marshal(tinker.RetrieveRequest{RequestID: of.ID})
	if err != nil {
		return fmt.Errorf("encoding a poll: %w", err)
	}
	future := record{ID: of.ID}
	if of.Sampling {
		future.Op = opSample
	}
	c := &call{route: posts[retrieve], method: http.MethodPost, path: retrieve, body: asked, future: future,
		contentType: tinker.ContentJSON,
		header:      http.Header{"Accept": {tinker.ContentProtobuf + ", " + tinker.ContentJSON}}}
	defer b.polling(c)()
	resp, credential, err := b.send(ctx, c)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := b.checkKey(resp, credential); err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		switch {
		case resp.StatusCode == http.StatusBadRequest:
			b.delivered(c, meter.Failed, nil)
		case b.config.Now().Sub(of.Made) > futureLife:
			b.delivered(c, meter.Lost, nil)
		default:
			b.ended(c, resp.StatusCode)
		}
		return nil
	}
	return b.countFetched(c, resp)
}

// countFetched counts a fetched answer if it is a result.
func (b *Broker) countFetched(c *call, resp *http.Response) error {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	start, err := io.ReadAll(io.LimitReader(resp.Body, maxEnvelope))
	if err != nil {
		return interrupted(err)
	}
	outcome := meter.Delivered
	if media != tinker.ContentProtobuf && len(start) < maxEnvelope {
		state, _, err := b.readResult(c, start)
		if err != nil {
			return foreign(c, err)
		}
		if state == noResult {
			return nil
		}
		outcome = state.outcome()
	}
	from, counter := counted(c, media, io.MultiReader(bytes.NewReader(start), resp.Body))
	if _, err := io.Copy(io.Discard, from); err != nil {
		return interrupted(err)
	}
	b.delivered(c, outcome, counter)
	return nil
}
