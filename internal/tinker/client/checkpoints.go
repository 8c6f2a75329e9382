// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// WeightsInfo returns which model can load the state at the path.
func (c *Client) WeightsInfo(ctx context.Context, path string) (tinker.WeightsInfo, error) {
	return post(ctx, c.caller, "weights_info", "weights_info", tinker.WeightsInfoRequest{TinkerPath: path},
		func(tinker.WeightsInfo) error { return nil })
}

const (
	opTrainingRuns = "training_runs"
	opCheckpoints  = "checkpoints"
	runsPage       = 100
	// checkpointsPage is large because a listing that changes between pages is read again.
	checkpointsPage = 1000
)

// TrainingRuns lists the runs that the key owns, each once. If the listing changes while it is read, it is read
// again, so that no run is missed between two pages. The iteration ends at the first error.
func (c *Client) TrainingRuns(ctx context.Context) iter.Seq2[tinker.TrainingRun, error] {
	return allPages(func(offset int) (page[tinker.TrainingRun], error) {
		query := url.Values{"access_scope": {"owned"}, "limit": {strconv.Itoa(runsPage)}, "offset": {strconv.Itoa(offset)}}
		list, err := fetch[tinker.TrainingRunList](ctx, c.caller, get(opTrainingRuns, "training_runs", query))
		return page[tinker.TrainingRun]{Items: list.TrainingRuns, Cursor: &list.Cursor}, err
	}, func(run tinker.TrainingRun) string { return run.TrainingRunID })
}

// TrainingRun returns one run.
func (c *Client) TrainingRun(ctx context.Context, runID string) (tinker.TrainingRun, error) {
	query := url.Values{"access_scope": {"owned"}}
	return fetch[tinker.TrainingRun](ctx, c.caller, get(opTrainingRuns, "training_runs/"+runID, query))
}

// Checkpoints lists the checkpoints of all runs that the key owns, as TrainingRuns does.
func (c *Client) Checkpoints(ctx context.Context) iter.Seq2[tinker.Checkpoint, error] {
	return allPages(func(offset int) (page[tinker.Checkpoint], error) {
		query := url.Values{"limit": {strconv.Itoa(checkpointsPage)}, "offset": {strconv.Itoa(offset)}}
		list, err := fetch[tinker.CheckpointList](ctx, c.caller, get(opCheckpoints, "checkpoints", query))
		return page[tinker.Checkpoint]{Items: list.Checkpoints, Cursor: list.Cursor}, err
	}, func(checkpoint tinker.Checkpoint) string { return checkpoint.TinkerPath })
}

// RunCheckpoints lists the checkpoints of one run.
func (c *Client) RunCheckpoints(ctx context.Context, runID string) ([]tinker.Checkpoint, error) {
	list, err := fetch[tinker.CheckpointList](ctx, c.caller, get(opCheckpoints, "training_runs/"+runID+"/checkpoints",
		nil))
	return list.Checkpoints, err
}

// SetTTL sets the time in seconds after which a checkpoint expires; nil means never.
func (c *Client) SetTTL(ctx context.Context, path string, seconds *int64) error {
	req, err := postJSON("set_ttl", "", tinker.TTLRequest{TTLSeconds: seconds})
	if err != nil {
		return err
	}
	req.method = http.MethodPut
	return c.sendToCheckpoint(ctx, req, path, "/ttl")
}

// DeleteCheckpoint deletes a checkpoint. If it does not exist, the error has CategoryNotFound, unless an earlier
// attempt of the same call may have deleted it.
func (c *Client) DeleteCheckpoint(ctx context.Context, path string) error {
	err := c.sendToCheckpoint(ctx, request{op: "delete_checkpoint", method: http.MethodDelete}, path, "")
	if CategoryFrom(err) == tinker.CategoryNotFound && MayHaveRun(err) {
		return nil
	}
	return err
}

// Publish lets everybody read a checkpoint, or with public false only its owner. It has no effect if that is already
// so.
func (c *Client) Publish(ctx context.Context, path string, public bool) error {
	req := request{op: "publish", method: http.MethodPost, accepted: []int{http.StatusConflict}}
	if !public {
		req.op, req.method = "unpublish", http.MethodDelete
	}
	return c.sendToCheckpoint(ctx, req, path, "/publish")
}

// ArchiveURL returns the URL at which the archive of a checkpoint can be fetched without a key for a while.
func (c *Client) ArchiveURL(ctx context.Context, path string) (string, error) {
	target, err := checkpointURL("archive", path, "/archive")
	if err != nil {
		return "", err
	}
	req := get("archive", target, nil)
	req.accepted = []int{http.StatusFound}
	link, err := c.do(ctx, req)
	if location := link.header.Get("Location"); err != nil || location != "" {
		return location, err
	}
	found, err := decode[tinker.ArchiveResponse](c.caller, req, link)
	return found.URL, err
}

// ExternalWeights returns the URL of each file of external weights, by its name. The files can be fetched without a key
// until the URLs expire. A checkpoint of another kind is refused with CategoryUser.
func (c *Client) ExternalWeights(ctx context.Context, path string) (tinker.ExternalWeightsURLs, error) {
	target, err := checkpointURL("external_weights_urls", path, "/external_weights_urls")
	if err != nil {
		return tinker.ExternalWeightsURLs{}, err
	}
	req := get("external_weights_urls", target, nil)
	answer, err := c.do(ctx, req)
	if err != nil {
		return tinker.ExternalWeightsURLs{}, err
	}
	return decode[tinker.ExternalWeightsURLs](c.caller, req, answer)
}

func (c *Client) sendToCheckpoint(ctx context.Context, req request, path, suffix string) error {
	var err error
	if req.path, err = checkpointURL(req.op, path, suffix); err != nil {
		return err
	}
	_, err = c.do(ctx, req)
	return err
}

func checkpointURL(op, path, suffix string) (string, error) {
	parsed, err := tinker.ParseCheckpoint(path)
	if err != nil {
		return "", &Error{Category: tinker.CategoryUser, Op: op, Err: err}
	}
	return "training_runs/" + parsed.Run + "/checkpoints/" + parsed.CheckpointID() + suffix, nil
}
