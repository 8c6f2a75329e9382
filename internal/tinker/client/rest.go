// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// WeightsInfo asks what a model must be to load the state at the path.
func (c *Client) WeightsInfo(ctx context.Context, path string) (tinker.WeightsInfo, error) {
	return post[tinker.WeightsInfo](ctx, c, "weights_info", "weights_info", tinker.WeightsInfoRequest{TinkerPath: path})
}

const (
	opTrainingRuns = "training_runs"
	opCheckpoints  = "checkpoints"
	runsPage       = 100
	// checkpointsPage is large, for a listing that changes between pages is read again.
	checkpointsPage = 1000
	// maxPasses is how often a listing that keeps changing is read before what was seen has to do.
	maxPasses = 5
)

// TrainingRuns lists the runs that the key owns, each once. A listing that changes while it is read is read
// again, so that nothing slips between two pages; the list ends with an error if there is one.
func (c *Client) TrainingRuns(ctx context.Context) iter.Seq2[tinker.TrainingRun, error] {
	return listAll(func(offset int) (page[tinker.TrainingRun], error) {
		query := url.Values{"access_scope": {"owned"}, "limit": {strconv.Itoa(runsPage)}, "offset": {strconv.Itoa(offset)}}
		list, err := fetch[tinker.TrainingRunList](ctx, c, get(opTrainingRuns, "training_runs", query))
		return page[tinker.TrainingRun]{list.TrainingRuns, &list.Cursor}, err
	}, func(run tinker.TrainingRun) string { return run.TrainingRunID })
}

// TrainingRun asks for one run.
func (c *Client) TrainingRun(ctx context.Context, runID string) (tinker.TrainingRun, error) {
	query := url.Values{"access_scope": {"owned"}}
	return fetch[tinker.TrainingRun](ctx, c, get(opTrainingRuns, "training_runs/"+runID, query))
}

// Checkpoints lists the checkpoints of all runs that the key owns, as TrainingRuns does.
func (c *Client) Checkpoints(ctx context.Context) iter.Seq2[tinker.Checkpoint, error] {
	return listAll(func(offset int) (page[tinker.Checkpoint], error) {
		query := url.Values{"limit": {strconv.Itoa(checkpointsPage)}, "offset": {strconv.Itoa(offset)}}
		list, err := fetch[tinker.CheckpointList](ctx, c, get(opCheckpoints, "checkpoints", query))
		return page[tinker.Checkpoint]{list.Checkpoints, list.Cursor}, err
	}, func(checkpoint tinker.Checkpoint) string { return checkpoint.TinkerPath })
}

// RunCheckpoints lists the checkpoints of one run.
func (c *Client) RunCheckpoints(ctx context.Context, runID string) ([]tinker.Checkpoint, error) {
	list, err := fetch[tinker.CheckpointList](ctx, c, get(opCheckpoints, "training_runs/"+runID+"/checkpoints", nil))
	return list.Checkpoints, err
}

// page is a part of a listing; without a cursor it is all.
type page[T any] struct {
	items  []T
	cursor *tinker.Cursor
}

// listAll yields everything that the pages hold, once for each key.
func listAll[T any](fetch func(offset int) (page[T], error), key func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		seen := map[string]bool{}
		for range maxPasses {
			items, steady, err := listOnce(fetch)
			for _, item := range items {
				if seen[key(item)] {
					continue
				}
				seen[key(item)] = true
				if !yield(item, nil) {
					return
				}
			}
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			if steady {
				return
			}
		}
	}
}

// listOnce reads the pages from the first to the last, and says whether the total stayed the same.
func listOnce[T any](fetch func(offset int) (page[T], error)) (items []T, steady bool, err error) {
	total := -1
	steady = true
	for {
		next, err := fetch(len(items))
		if err != nil {
			return items, false, err
		}
		items = append(items, next.items...)
		if next.cursor == nil {
			return items, true, nil
		}
		steady = steady && (total < 0 || total == next.cursor.TotalCount)
		total = next.cursor.TotalCount
		if len(next.items) == 0 || len(items) >= total {
			return items, steady, nil
		}
	}
}

// SetTTL lets a checkpoint expire so many seconds from now; nil keeps it for ever.
func (c *Client) SetTTL(ctx context.Context, path string, seconds *int64) error {
	ask, err := postJSON("set_ttl", "", tinker.TTLRequest{TTLSeconds: seconds})
	if err != nil {
		return err
	}
	ask.method = http.MethodPut
	return c.onCheckpoint(ctx, ask, path, "/ttl")
}

// DeleteCheckpoint deletes a checkpoint. One that is not there is an error of CategoryNotFound, unless it
// may be a repeat of this very call that deleted it.
func (c *Client) DeleteCheckpoint(ctx context.Context, path string) error {
	err := c.onCheckpoint(ctx, call{op: "delete_checkpoint", method: http.MethodDelete}, path, "")
	if CategoryFrom(err) == tinker.CategoryNotFound && MayHaveRun(err) {
		return nil
	}
	return err
}

func (c *Client) onCheckpoint(ctx context.Context, ask call, path, suffix string) error {
	var err error
	if ask.path, err = checkpointURL(ask.op, path, suffix); err != nil {
		return err
	}
	_, err = c.do(ctx, ask)
	return err
}

func checkpointURL(op, path, suffix string) (string, error) {
	parsed, err := tinker.ParsePath(path)
	if err != nil {
		return "", &Error{Category: tinker.CategoryUser, Op: op, Err: err}
	}
	return "training_runs/" + parsed.Run + "/checkpoints/" + parsed.CheckpointID() + suffix, nil
}

const opArchive = "archive"

// Archive gives the checkpoint as a tar, which the caller closes. It waits while the server packs. The tar
// is fetched from where the server says, without the key.
func (c *Client) Archive(ctx context.Context, path string) (io.ReadCloser, error) {
	target, err := checkpointURL(opArchive, path, "/archive")
	if err != nil {
		return nil, err
	}
	ask := get(opArchive, target, nil)
	ask.answers = []int{http.StatusFound}
	answer, err := c.do(ctx, ask)
	if err != nil {
		return nil, err
	}
	location := answer.header.Get("Location")
	if answer.status != http.StatusFound {
		body, err := decodeJSON[tinker.ArchiveResponse](opArchive, answer)
		if err != nil {
			return nil, err
		}
		location = body.URL
	}
	return c.download(ctx, location)
}

func (c *Client) download(ctx context.Context, location string) (io.ReadCloser, error) {
	target, err := url.Parse(location)
	if err != nil {
		return nil, protocolError(opArchive, fmt.Errorf("parsing the archive's address: %w", err))
	}
	target = c.base.ResolveReference(target)
	if target.Scheme != "https" && target.Scheme != c.base.Scheme {
		return nil, protocolError(opArchive, fmt.Errorf("archive is at an address of scheme %q", target.Scheme))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, protocolError(opArchive, err)
	}
	request.Header.Set("User-Agent", c.userAgent)
	response, err := c.files.Do(request)
	if err != nil {
		return nil, unanswered(ctx, opArchive, err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, refused(opArchive, reply{status: response.StatusCode, header: response.Header})
	}
	return response.Body, nil
}
