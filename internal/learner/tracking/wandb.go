// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// wandb sends lines to Weights & Biases by the HTTP interface that its own package uses. The run's id is the object's
// UID, so that all attempts continue the same run.
type wandb struct {
	service

	settings contracttracking.WandB
	run      Run
	// entity is the entity that the service names, and path the path of the run's stream.
	entity, path string
	// written counts the lines of the history.
	written int
	// began is the time at which the run began, by its lines; zero before the first.
	began time.Time
	// summary has the newest value of each metric.
	summary map[string]any
}

func newWandB(settings contracttracking.WandB, run Run) *wandb {
	return &wandb{service: newService("tracking.wandb", settings.BaseURL), settings: settings, run: run}
}

// Service implements Sink.
func (*wandb) Service() string { return "wandb" }

const wandbStatus = `query RunResumeStatus($project: String, $entity: String, $name: String!) {
  model(name: $project, entityName: $entity) {
    entity { name }
    bucket(name: $name, missingOk: true) { id historyLineCount historyTail summaryMetrics config }
  }
}`

const wandbUpsert = `mutation UpsertBucket($id: String, $name: String, $project: String, $entity: String, $displayName: String, ` +
	`$config: JSONString, $tags: [String!]) {
  upsertBucket(input: {id: $id, name: $name, modelName: $project, entityName: $entity, displayName: $displayName, ` +
	`config: $config, tags: $tags}) {
    bucket { id name project { name entity { name } } }
  }
}`

// wandbBucket is a run as the service has it.
type wandbBucket struct {
	ID               string `json:"id"`
	HistoryLineCount int    `json:"historyLineCount"`
	// HistoryTail is an array of the last lines, and these, SummaryMetrics and Config are objects; all are encoded as
	// JSON.
	HistoryTail    string `json:"historyTail"`
	SummaryMetrics string `json:"summaryMetrics"`
	Config         string `json:"config"`
}

// Open implements Sink.
func (w *wandb) Open(ctx context.Context) (int64, error) {
	key, err := w.readKey(w.settings.KeyFile)
	if err != nil {
		return 0, err
	}
	w.authorize = func(r *http.Request) { r.SetBasicAuth("api", key) }
	bucket, err := w.find(ctx)
	if err != nil {
		return 0, err
	}
	newest, err := w.restore(bucket)
	if err != nil {
		return 0, err
	}
	return newest, w.upsert(ctx, bucket)
}

// find returns the run; nil if it does not exist.
func (w *wandb) find(ctx context.Context) (*wandbBucket, error) {
	var found struct {
		Model *struct {
			Bucket *wandbBucket `json:"bucket"`
		} `json:"model"`
	}
	err := w.query(ctx, "RunResumeStatus", wandbStatus, map[string]any{
		"project": w.settings.Project, "entity": optional(w.settings.Entity), "name": w.run.UID,
	}, &found)
	if err != nil || found.Model == nil {
		return nil, err
	}
	return found.Model.Bucket, nil
}

// restore sets the state to an existing run, and returns its newest step.
func (w *wandb) restore(bucket *wandbBucket) (int64, error) {
	w.written, w.began, w.summary = 0, time.Time{}, map[string]any{}
	if bucket == nil {
		return -1, nil
	}
	w.written = bucket.HistoryLineCount
	if bucket.SummaryMetrics != "" {
		// A summary that cannot be read is replaced by the next line's.
		_ = json.Unmarshal([]byte(bucket.SummaryMetrics), &w.summary)
	}
	if w.written == 0 {
		return -1, nil
	}
	var tail []string
	var line struct {
		Step      *int64  `json:"_step"`
		Timestamp float64 `json:"_timestamp"`
		Runtime   float64 `json:"_runtime"`
	}
	err := json.Unmarshal([]byte(bucket.HistoryTail), &tail)
	if err == nil && len(tail) > 0 {
		err = json.Unmarshal([]byte(tail[len(tail)-1]), &line)
	}
	if err != nil || line.Step == nil {
		return 0, &serviceError{code: problem.ServiceFailing,
			message: "Weights & Biases does not name the newest step of the run: it " +
				"is tried again"}
	}
	if line.Timestamp > 0 {
		w.began = time.UnixMicro(int64((line.Timestamp - line.Runtime) * 1e6))
	}
	return *line.Step, nil
}

// upsert creates the run, or brings its settings up to date.
func (w *wandb) upsert(ctx context.Context, bucket *wandbBucket) error {
	former, id := "", any(nil)
	if bucket != nil {
		former, id = bucket.Config, bucket.ID
	}
	config, err := wandbConfig(w.run.Config, former)
	if err != nil {
		return err
	}
	var made struct {
		Upsert struct {
			Bucket struct {
				Project struct {
					Name   string                `json:"name"`
					Entity struct{ Name string } `json:"entity"`
				} `json:"project"`
			} `json:"bucket"`
		} `json:"upsertBucket"`
	}
	variables := map[string]any{
		"id": id, "name": w.run.UID, "project": w.settings.Project, "entity": optional(w.settings.Entity),
		"displayName": w.settings.RunName, "config": config,
	}
	if len(w.settings.Tags) > 0 {
		variables["tags"] = w.settings.Tags
	}
	if err := w.query(ctx, "UpsertBucket", wandbUpsert, variables, &made); err != nil {
		return err
	}
	project := made.Upsert.Bucket.Project
	if project.Entity.Name == "" || project.Name == "" {
		return &serviceError{code: problem.ServiceNotFound,
			message: "What answers at tracking.wandb.baseURL does not create runs: " +
				"correct it"}
	}
	w.entity = project.Entity.Name
	w.path = "/files/" + url.PathEscape(w.entity) + "/" + url.PathEscape(project.Name) + "/" + url.PathEscape(w.run.UID) +
		"/file_stream"
	return nil
}

// wandbConfig returns the run's former config with the values of config, in the form of the service: each value in an
// object of its own.
func wandbConfig(config map[string]any, former string) (string, error) {
	wrapped := map[string]any{}
	if former != "" {
		// An unreadable config is replaced.
		_ = json.Unmarshal([]byte(former), &wrapped)
	}
	for name, value := range config {
		wrapped[name] = map[string]any{"value": value}
	}
	data, err := json.Marshal(wrapped)
	if err != nil {
		return "", fmt.Errorf("encoding config: %w", err)
	}
	return string(data), nil
}

// query sends a GraphQL operation. Its errors come with status 200.
func (w *wandb) query(ctx context.Context, operation, text string, variables map[string]any, data any) error {
	answer := struct {
		Data   any                        `json:"data"`
		Errors []struct{ Message string } `json:"errors"`
	}{Data: data}
	request := map[string]any{"operationName": operation, "query": text, "variables": variables}
	if err := w.call(ctx, "/graphql", request, &answer); err != nil {
		return err
	}
	if len(answer.Errors) == 0 {
		return nil
	}
	status, message := http.StatusInternalServerError, answer.Errors[0].Message
	switch lower := strings.ToLower(message); {
	case strings.Contains(lower, "permission denied") || strings.Contains(lower, "forbidden"):
		status = http.StatusForbidden
	case strings.Contains(lower, "not found"):
		status = http.StatusNotFound
	case strings.Contains(lower, "unauthorized") || strings.Contains(lower, "not logged in"):
		status = http.StatusUnauthorized
	}
	return refusal(w.field, w.keyField, w.settings.BaseURL, status, quote([]byte(message)))
}

// wandbStream is the body of a request to a run's stream.
type wandbStream struct {
	Files      map[string]wandbFile `json:"files,omitempty"`
	Preempting bool                 `json:"preempting,omitempty"`
	Complete   bool                 `json:"complete,omitempty"`
	ExitCode   *int                 `json:"exitcode,omitempty"`
}

// wandbFile has lines of a file, from line Offset on.
type wandbFile struct {
	Offset  int      `json:"offset"`
	Content []string `json:"content"`
}

// Write implements Sink. An empty request shows that the run continues.
func (w *wandb) Write(ctx context.Context, lines []Line) error {
	if len(lines) == 0 {
		return w.call(ctx, w.path, wandbStream{}, nil)
	}
	began, summary := w.began, maps.Clone(w.summary)
	if began.IsZero() {
		began = lines[0].Time
	}
	content := make([]string, len(lines))
	for i, line := range lines {
		values := map[string]any{
			"_step": line.Step, "_timestamp": line.Time.Unix(), "_runtime": max(0, line.Time.Sub(began).Seconds()),
		}
		for name, value := range line.Metrics {
			values[name] = value
		}
		maps.Copy(summary, values)
		encoded, err := json.Marshal(values)
		if err != nil {
			return fmt.Errorf("encoding step %d: %w", line.Step, err)
		}
		content[i] = string(encoded)
	}
	encoded, err := json.Marshal(summary)
	if err != nil {
		return fmt.Errorf("encoding summary: %w", err)
	}
	err = w.call(ctx, w.path, wandbStream{Files: map[string]wandbFile{
		"wandb-history.jsonl": {Offset: w.written, Content: content},
		"wandb-summary.json":  {Content: []string{string(encoded)}},
	}}, nil)
	if err != nil {
		return err
	}
	w.began, w.summary, w.written = began, summary, w.written+len(lines)
	return nil
}

// Close implements Sink.
func (w *wandb) Close(ctx context.Context, outcome Outcome) error {
	body := wandbStream{Preempting: outcome == Interrupted, Complete: outcome != Interrupted}
	if body.Complete {
		code := 0
		if outcome == Failed {
			code = 1
		}
		body.ExitCode = &code
	}
	return w.call(ctx, w.path, body, nil)
}

// optional returns text, or nil if it is empty.
func optional(text string) any {
	if text == "" {
		return nil
	}
	return text
}
