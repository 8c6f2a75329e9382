// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// rows is a data set of the split train.
type rows []dataset.Row

func (r rows) Splits(context.Context) ([]environment.Split, error) {
	return []environment.Split{{Name: "train", Tasks: int64(len(r))}}, nil
}

func (r rows) Row(_ context.Context, _ string, index int64) (dataset.Row, error) {
	return r[index], nil
}

func judgedRow(id string, criteria ...any) dataset.Row {
	row := dataset.NewRow("Name a fruit.", "")
	row.ID, row.Fields = id, map[string]any{rubric.FieldRubrics: criteria}
	return row
}

func judged(judge settings.Judge) contract.Definition {
	judge.Sampling = settings.JudgeSampling{Temperature: new(0.7), MaxTokens: 64}
	judge.TimeoutSeconds, judge.Retries = 10, new(int32(0))
	return contract.Definition{
		Dataset: &contract.Dataset{Dataset: settings.Dataset{JSONL: &settings.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "c"}},
			Splits: []settings.DataSplit{{Name: "train", Source: "rows.jsonl"}}}},
		Reward: &settings.Reward{RewardRule: settings.RewardRule{Rubric: &settings.Rubric{Judge: judge,
			Scoring: settings.ScorePassRate, MinCoverage: new(1.0)}}},
	}
}

func builder(data dataset.Dataset) Builder {
	return Builder{
		Data:   func(context.Context, contract.Dataset) (dataset.Dataset, error) { return data, nil },
		Secret: func(key ref.SecretKey) (string, error) { return "key of " + key.Name + "/" + key.Key, nil },
	}
}

// grade plays the first row with a reply.
func grade(t *testing.T, env environment.Environment) (environment.Turn, error) {
	t.Helper()
	episode, err := env.Start(t.Context(), environment.Task{Split: "train"})
	if err != nil {
		t.Fatal(err)
	}
	defer episode.Close(t.Context())
	return episode.Step(t.Context(), []environment.Reply{{Message: chat.Message{Role: chat.RoleAssistant,
		Content: "An apple."}}})
}

func TestBuildJudgeAtAnEndpoint(t *testing.T) {
	var key string
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(
			[]byte(`{"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "{\"ratings\": [{\"rating\": \"Yes\"}, {\"rating\": \"No\"}]}"}}]}`))
	}))
	defer server.Close()
	definition := judged(settings.Judge{OpenAI: &settings.OpenAIJudge{BaseURL: server.URL, Model: "m",
		APIKeySecretKeyRef: &ref.SecretKey{Name: "s", Key: "k"}}})
	b := builder(rows{judgedRow("a", "It is a fruit.", "It is red.")})
	env, err := b.Build(t.Context(), definition)
	if err != nil {
		t.Fatal(err)
	}
	turn, err := grade(t, env)
	if err != nil || len(turn.Rewards) != 1 || turn.Rewards[0].Value != 0.5 || key != "Bearer key of s/k" {
		t.Errorf("Step = %+v, %v, with %q, want the reward 0.5 and the Secret's key", turn, err, key)
	}
	status = http.StatusNotFound
	_, err = grade(t, env)
	if err == nil || environment.AsFault(err).Kind != environment.JudgeFault || !strings.Contains(err.Error(),
		"correct the judge's baseURL or model") {
		t.Errorf("Step with an unknown model: %v, want a fault of the judge that says what to do", err)
	}
}

// TestCheckRows checks that CheckRows checks each row, and that the error names the wrong row and the field.
func TestCheckRows(t *testing.T) {
	definition := judged(settings.Judge{Tinker: &settings.TinkerJudge{Model: "m"}})
	sum := definition
	sum.Reward = &settings.Reward{Weighted: []settings.WeightedReward{{Name: "judged", Weight: 1,
		RewardRule: definition.Reward.RewardRule}}}
	for name, row := range map[string]dataset.Row{
		"no criteria":         judgedRow("b"),
		"another column":      {ID: "b", Fields: map[string]any{"criteria": []any{"x"}}},
		"an empty criterion":  judgedRow("b", "It is red.", ""),
		"a criterion of JSON": judgedRow("b", map[string]any{"text": "x"}),
	} {
		for _, definition := range []contract.Definition{definition, sum} {
			b := builder(rows{judgedRow("a", "It is red."), row})
			if _, err := b.Build(t.Context(), definition); err != nil {
				t.Errorf("%s: Build without CheckRows: %v", name, err)
			}
			b.CheckRows = true
			_, err := b.Build(t.Context(), definition)
			var wrong *verify.RowError
			if !errors.As(err, &wrong) || wrong.Index != 1 || !strings.Contains(err.Error(),
				`row 2 of split "train" (id "b")`) || !strings.Contains(err.Error(), "rubrics") {
				t.Errorf("%s: Build: %v, want an error that names the row and the field", name, err)
			}
		}
	}
	b := builder(rows{judgedRow("a", "It is red.")})
	b.CheckRows = true
	if _, err := b.Build(t.Context(), definition); err != nil {
		t.Errorf("Build of rows in order: %v", err)
	}
}
