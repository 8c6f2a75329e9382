// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// The limits of one request of MLflow's interface.
const (
	mlflowMetrics = 1000
	mlflowParams  = 100
)

// mlflowUID is the tag that has the UID of the object, by which later attempts find the run.
const mlflowUID = "tinker-operator.uid"

// mlflow sends lines to MLflow by its REST interface. MLflow makes the ids of runs, so the run is found by a tag with
// the object's UID.
type mlflow struct {
	service

	settings contracttracking.MLflow
	run      Run
	// id is the id of the run at the service.
	id string
	// known has, by metric, the newest step that the service has.
	known map[string]int64
}

func newMLflow(settings contracttracking.MLflow, run Run) *mlflow {
	m := &mlflow{service: newService("tracking.mlflow", settings.BaseURL+"/api/2.0/mlflow"), settings: settings, run: run}
	m.keyField = "tracking.mlflow.tokenSecretKeyRef"
	if settings.Username != "" {
		m.keyField = "tracking.mlflow.passwordSecretKeyRef"
	}
	return m
}

// Service implements Sink.
func (*mlflow) Service() string { return "mlflow" }

// mlflowPair is a tag or a parameter.
type mlflowPair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// mlflowMetric is a value of a metric.
type mlflowMetric struct {
	Key       string  `json:"key"`
	Value     float64 `json:"value"`
	Timestamp int64   `json:"timestamp"`
	Step      int64   `json:"step"`
}

// mlflowBatch is a request that adds to a run.
type mlflowBatch struct {
	RunID   string         `json:"run_id"`
	Metrics []mlflowMetric `json:"metrics,omitempty"`
	Params  []mlflowPair   `json:"params,omitempty"`
}

// mlflowRun is a run as the service has it. Of each metric it has the value with the newest step.
type mlflowRun struct {
	Info struct {
		RunID string `json:"run_id"`
	} `json:"info"`
	Data struct {
		Metrics []mlflowMetric `json:"metrics"`
		Params  []mlflowPair   `json:"params"`
	} `json:"data"`
}

// mlflowUpdate changes a run.
type mlflowUpdate struct {
	RunID   string `json:"run_id"`
	RunName string `json:"run_name,omitempty"`
	Status  string `json:"status"`
	EndTime int64  `json:"end_time,omitempty"`
}

// Open implements Sink.
func (m *mlflow) Open(ctx context.Context) (int64, error) {
	if err := m.readCredentials(); err != nil {
		return 0, err
	}
	experiment, err := m.experiment(ctx)
	if p, ok := errors.AsType[*serviceError](err); ok && p.code == problem.TrackerKeyRefused && m.settings.KeyFile == "" {
		p.message = "The server that tracking.mlflow.baseURL names requires authentication: give tokenSecretKeyRef, or " +
			"username and passwordSecretKeyRef"
	}
	if err != nil {
		return 0, err
	}
	found, err := m.find(ctx, experiment)
	if err != nil {
		return 0, err
	}
	if found == nil {
		if found, err = m.create(ctx, experiment); err != nil {
			return 0, err
		}
	} else if err := m.call(ctx, "/runs/update", mlflowUpdate{RunID: found.Info.RunID, RunName: m.settings.RunName,
		Status: "RUNNING"}, nil); err != nil {
		return 0, err
	}
	m.id = found.Info.RunID
	if err := m.addParams(ctx, found.Data.Params); err != nil {
		return 0, err
	}
	return m.restore(found.Data.Metrics), nil
}

// readCredentials reads the token or password, if the settings name one.
func (m *mlflow) readCredentials() error {
	m.authorize = func(*http.Request) {}
	if m.settings.KeyFile == "" {
		return nil
	}
	key, err := m.readKey(m.settings.KeyFile)
	if err != nil {
		return err
	}
	m.authorize = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) }
	if m.settings.Username != "" {
		m.authorize = func(r *http.Request) { r.SetBasicAuth(m.settings.Username, key) }
	}
	return nil
}

// experiment returns the id of the experiment, which it creates if it does not exist.
func (m *mlflow) experiment(ctx context.Context) (string, error) {
	var found struct {
		Experiment struct {
			ID    string `json:"experiment_id"`
			Stage string `json:"lifecycle_stage"`
		} `json:"experiment"`
	}
	err := m.get(ctx, "/experiments/get-by-name", url.Values{"experiment_name": {m.settings.Experiment}}, &found)
	if p, ok := errors.AsType[*serviceError](err); ok && strings.Contains(p.message, "RESOURCE_DOES_NOT_EXIST") {
		var made struct {
			ID string `json:"experiment_id"`
		}
		err := m.call(ctx, "/experiments/create", map[string]string{"name": m.settings.Experiment}, &made)
		return made.ID, m.orForeign(err, made.ID)
	}
	if err == nil && found.Experiment.Stage == "deleted" {
		return "", &serviceError{code: problem.ServiceNotFound,
			message: "The experiment that tracking.mlflow.experiment names is deleted at the service: " +
				"restore it there, or name another one"}
	}
	return found.Experiment.ID, m.orForeign(err, found.Experiment.ID)
}

// orForeign returns the error, or a problem if an answer lacks the id that MLflow's answers have.
func (m *mlflow) orForeign(err error, id string) error {
	if err == nil && id == "" {
		return &serviceError{code: problem.ServiceNotFound,
			message: "What answers at tracking.mlflow.baseURL is not MLflow's " +
				"interface: correct it"}
	}
	return err
}

// find returns the run of the object; nil if it does not exist, or is deleted at the service.
func (m *mlflow) find(ctx context.Context, experiment string) (*mlflowRun, error) {
	var found struct {
		Runs []mlflowRun `json:"runs"`
	}
	err := m.call(ctx, "/runs/search", map[string]any{
		"experiment_ids": []string{experiment}, "filter": "tags.`" + mlflowUID + "` = '" + m.run.UID + "'",
		"order_by": []string{"attributes.start_time ASC"}, "max_results": 1,
	}, &found)
	if err != nil || len(found.Runs) == 0 {
		return nil, err
	}
	return &found.Runs[0], nil
}

// create creates the run.
func (m *mlflow) create(ctx context.Context, experiment string) (*mlflowRun, error) {
	tags := map[string]string{}
	maps.Copy(tags, m.settings.Tags)
	tags[mlflowUID], tags["tinker-operator.namespace"], tags["tinker-operator.name"] = m.run.UID, m.run.Namespace,
		m.run.Name
	var made struct {
		Run mlflowRun `json:"run"`
	}
	err := m.call(ctx, "/runs/create", map[string]any{
		"experiment_id": experiment, "run_name": m.settings.RunName, "start_time": time.Now().UnixMilli(),
		"tags": mlflowPairs(tags),
	}, &made)
	return &made.Run, m.orForeign(err, made.Run.Info.RunID)
}

// addParams adds the parameters that the service does not have. Existing parameters can never be changed there.
func (m *mlflow) addParams(ctx context.Context, known []mlflowPair) error {
	params := mlflowPairs(paramsOf(m.run.Config))
	params = slices.DeleteFunc(params, func(p mlflowPair) bool {
		return slices.ContainsFunc(known, func(k mlflowPair) bool { return k.Key == p.Key })
	})
	for chunk := range slices.Chunk(params, mlflowParams) {
		if err := m.call(ctx, "/runs/log-batch", mlflowBatch{RunID: m.id, Params: chunk}, nil); err != nil {
			return err
		}
	}
	return nil
}

// restore takes over the state of an existing run, and returns the newest step that the service certainly has in
// full: an unanswered request may have added only a part of the metrics of the newest step.
func (m *mlflow) restore(metrics []mlflowMetric) int64 {
	m.known = map[string]int64{}
	newest := int64(-1)
	for _, metric := range metrics {
		m.known[metric.Key] = metric.Step
		newest = max(newest, metric.Step-1)
	}
	return newest
}

// Write implements Sink. The service adds the metrics of a request in their order.
func (m *mlflow) Write(ctx context.Context, lines []Line) error {
	var metrics []mlflowMetric
	for _, line := range lines {
		for _, name := range slices.Sorted(maps.Keys(line.Metrics)) {
			metric := mlflowMetric{Key: mlflowName(name), Value: line.Metrics[name], Timestamp: line.Time.UnixMilli(),
				Step: line.Step}
			if newest, known := m.known[metric.Key]; !known || newest < line.Step {
				metrics = append(metrics, metric)
			}
		}
	}
	for chunk := range slices.Chunk(metrics, mlflowMetrics) {
		if err := m.call(ctx, "/runs/log-batch", mlflowBatch{RunID: m.id, Metrics: chunk}, nil); err != nil {
			return err
		}
		for _, metric := range chunk {
			m.known[metric.Key] = metric.Step
		}
	}
	return nil
}

// Close implements Sink. An interrupted run is shown as scheduled to continue.
func (m *mlflow) Close(ctx context.Context, outcome Outcome) error {
	update := mlflowUpdate{RunID: m.id, Status: "SCHEDULED"}
	if outcome != Interrupted {
		update.Status, update.EndTime = "FINISHED", time.Now().UnixMilli()
	}
	if outcome == Failed {
		update.Status = "FAILED"
	}
	return m.call(ctx, "/runs/update", update, nil)
}
