// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/test/sample"
)

const countdownModel = "tinkersim/byte-136k-countdown"

// player plays episodes of the sample solver-judge.yaml.
type player struct {
	t      *testing.T
	env    environment.Environment
	data   dataset.Dataset
	render renderer.Renderer
	tokens tokenizer.Tokenizer
}

func newPlayer(t *testing.T) *player {
	t.Helper()
	loader := source.New(source.Config{Dir: t.TempDir()})
	builder := registry.Builder{Data: loader.Open}
	definition := sample.Read(t, "solver-judge.yaml").Pins(t, builder)["countdown"].Definition
	env, err := builder.Build(t.Context(), definition)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{t: t, env: env}
	if p.data, err = loader.Open(t.Context(), *definition.Dataset); err != nil {
		t.Fatal(err)
	}
	if p.render, err = families.ForModel(countdownModel); err != nil {
		t.Fatal(err)
	}
	if p.tokens, err = tokenizer.ForModel(countdownModel); err != nil {
		t.Fatal(err)
	}
	return p
}

// task returns a task of the split test, as the trainer has it.
func (p *player) task(index int64) task {
	p.t.Helper()
	row, err := p.data.Row(p.t.Context(), "test", index)
	if err != nil {
		p.t.Fatal(err)
	}
	var found task
	for name, to := range map[string]any{"nums": &found.numbers, "target": &found.target} {
		text, err := json.Marshal(row.Fields[name])
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	return found
}

// play plays an episode and returns its metrics. sample returns the ids that are sampled after each prompt.
func (p *player) play(task environment.Task, sample func(prompts [][]int32) [][]int32) map[string]float64 {
	p.t.Helper()
	episode, err := p.env.Start(p.t.Context(), task)
	if err != nil {
		p.t.Fatal(err)
	}
	defer episode.Close(p.t.Context())
	asked, err := episode.Prompts(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for {
		var prompts [][]int32
		for _, prompt := range asked {
			ids, err := p.render.Prompt(renderer.Conversation{Messages: prompt.Messages})
			if err != nil {
				p.t.Fatal(err)
			}
			prompts = append(prompts, ids)
		}
		var replies []environment.Reply
		for i, sampled := range sample(prompts) {
			parsed, err := p.render.Parse(sampled)
			if err != nil {
				p.t.Fatal(err)
			}
			replies = append(replies, environment.Reply{
				Role: asked[i].Role, Conversation: asked[i].Conversation, Message: parsed.Message,
				Truncated: parsed.Ending == renderer.Truncated,
			})
		}
		turn, err := episode.Step(p.t.Context(), replies)
		if err != nil {
			p.t.Fatal(err)
		}
		if turn.Done {
			return turn.Metrics
		}
		asked = turn.Prompts
	}
}

// TestCountdownPrompts compares the texts that the base model was trained on with the prompts of the sample's
// environment: tasks of the data set countdown in the workflow solverJudge.
func TestCountdownPrompts(t *testing.T) {
	p := newPlayer(t)
	solutions := []string{"3*8", noSolution}
	for index := range int64(50) {
		want := p.task(index).question()
		asked := 0
		p.play(environment.Task{Split: "test", Index: index}, func(prompts [][]int32) [][]int32 {
			var replies [][]int32
			for i, prompt := range prompts {
				got, err := p.tokens.Decode(prompt)
				if err != nil {
					t.Fatal(err)
				}
				question := want
				reply := " " + solutions[i]
				if i == 0 {
					reply = " " + answerOf(solutions[i])
				}
				if len(prompts) == 1 {
					question = judgeQuestion(want, []string{answerOf(solutions[0]), solutions[1]})
				}
				if diff := cmp.Diff(promptOf(question), got); diff != "" {
					t.Fatalf("prompt (-trained +asked):\n%s", diff)
				}
				asked++
				replies = append(replies, append(p.tokens.Encode(reply), endOfTurn))
			}
			return replies
		})
		if asked != 3 {
			t.Fatalf("%d prompts, want the prompts of 2 solvers and a judge", asked)
		}
	}
}

// TestCountdownBase measures the base model on held-out tasks of the sample: a solver is right sometimes, and the
// judge chooses each index equally often, whatever the solutions are.
func TestCountdownBase(t *testing.T) {
	p := newPlayer(t)
	weights := model.BaseWeights(model.CountdownBase())
	const episodes = 400
	var solver float64
	indexes := map[string]int{}
	for index := range int64(episodes) {
		metrics := p.play(environment.Task{Split: "test", Index: index}, func(prompts [][]int32) [][]int32 {
			var requests []model.SampleRequest
			for i, prompt := range prompts {
				requests = append(requests, model.SampleRequest{Prompt: prompt, MaxTokens: 32, Temperature: 1, TopP: 1,
					Seed: uint64(index), Index: i})
			}
			samples, err := weights.Sample(t.Context(), requests)
			if err != nil {
				t.Fatal(err)
			}
			var replies [][]int32
			for _, s := range samples {
				replies = append(replies, s.Tokens)
			}
			if len(prompts) == 1 {
				text, err := p.tokens.Decode(replies[0])
				if err != nil {
					t.Fatal(err)
				}
				indexes[text]++
			}
			return replies
		})
		solver += metrics["solver_acc"] / episodes
	}
	t.Logf("solver_acc %.3f, replies of the judge %v", solver, indexes)
	if solver < 0.1 || solver > 0.3 {
		t.Errorf("solver_acc is %.3f, want 0.1 to 0.3", solver)
	}
	for _, reply := range []string{" <answer>1</answer><|end|>", " <answer>2</answer><|end|>"} {
		if share := float64(indexes[reply]) / episodes; share < 0.4 || share > 0.6 {
			t.Errorf("%.2f of the judge's replies are %q, want about a half", share, reply)
		}
	}
}
