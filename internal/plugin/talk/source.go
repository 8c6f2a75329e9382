// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package talk has the commands that let people and programs talk to the checkpoints of a run: serve and chat.
package talk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/plugin/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/serving"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	tinkerclient "github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// The environment variables that the official SDK reads as well.
const (
	keyVariable     = "TINKER_API_KEY"
	baseURLVariable = "TINKER_BASE_URL"
)

// choice are the flags that choose a checkpoint and how it is sampled.
type choice struct {
	step             int64
	best             bool
	baseURL, model   string
	temperature      float64
	topP             float64
	topK, maxTokens  int
	streamTokens     int
	temperatureGiven func() bool
}

// add adds the flags.
func (c *choice) add(flags *pflag.FlagSet) {
	flags.Int64Var(&c.step, "step", -1, "`STEP` of the checkpoint. Defaults to the newest.")
	flags.BoolVar(&c.best, "best", false, "take the best checkpoint by spec.checkpoints.keepBest")
	flags.StringVar(&c.baseURL, "base-url", "", "`URL` at which this machine reaches the endpoint. Defaults to "+
		"TINKER_BASE_URL, or to the run's own")
	flags.StringVar(&c.model, "model", "", "`NAME` of the base model of a tinker:// path. By default the endpoint "+
		"says it")
	flags.Float64Var(&c.temperature, "temperature", 1, "sampling temperature. Defaults to the temperature of the run's "+
		"evaluation or training")
	flags.Float64Var(&c.topP, "top-p", 1, "keep the likeliest tokens whose probabilities sum to it")
	flags.IntVar(&c.topK, "top-k", -1, "keep so many of the likeliest tokens; -1 keeps all")
	flags.IntVar(&c.maxTokens, "max-tokens", 0, "`TOKENS` of a reply that asks for no number. Defaults to the run's "+
		"number, or to 1024")
	flags.IntVar(&c.streamTokens, "stream-tokens", 16, "`TOKENS` of the first piece of a stream, later ones being up "+
		"to 8 times as long; each piece reads the prompt again. 0 shows replies once they are whole")
	c.temperatureGiven = func() bool { return flags.Changed("temperature") }
}

func (c *choice) check() error {
	switch {
	case c.best && c.step >= 0:
		return cli.Misused("--step and --best exclude each other: give one of them")
	case c.temperature < 0 || c.topP <= 0 || c.topP > 1 || c.maxTokens < 0 || c.streamTokens < 0:
		return cli.Misused("--temperature, --max-tokens and --stream-tokens are at least 0, --top-p is above 0 and at most 1")
	}
	return nil
}

// source is the source of checkpoints: a run, or one path.
type source struct {
	choice
	env cli.IO
	// kube is the cluster; nil for a path.
	kube *cli.Connection
	run  *v1alpha1.TrainingRun
	// path is a checkpoint that belongs to no run here.
	path string

	endpoint checkpoints.Endpoint
	model    contract.Model
	format   *load.Renderer
	sampler  *serving.Sampler
	defaults serving.Defaults
}

// open reads the settings for sampling from a run or a tinker:// path. The caller closes it.
func (c choice) open(ctx context.Context, env cli.IO, connect func() (*cli.Connection, error),
	name string) (*source, error) {
	s := &source{choice: c, env: env, run: &v1alpha1.TrainingRun{},
		defaults: serving.Defaults{Temperature: c.temperature, TopP: c.topP, TopK: c.topK, MaxTokens: c.maxTokens}}
	find := s.openPath
	if !strings.HasPrefix(name, "tinker://") {
		var err error
		if s.kube, err = connect(); err != nil {
			return nil, err
		}
		if s.run, err = s.kube.Run(ctx, name); err != nil {
			return nil, err
		}
		find = s.openRun
	} else if c.best || c.step >= 0 {
		return nil, cli.Misused("--step and --best choose a checkpoint of a run, and %s is one: remove them", name)
	}
	s.path = name
	if err := s.prepare(ctx, find); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// prepare calls find, which finds the checkpoints, and loads the renderer and the client that sample from them.
func (s *source) prepare(ctx context.Context, find func(context.Context) error) error {
	if err := find(ctx); err != nil {
		return err
	}
	files := &fetch.Fetcher{Endpoint: s.env.Getenv("HF_ENDPOINT"), Token: s.env.Getenv("HF_TOKEN"),
		Cache: s.env.TokenizerCache()}
	var err error
	if s.format, err = load.ForModel(ctx, files, s.model); err != nil {
		return err
	}
	api, err := s.client(ctx)
	if err != nil {
		return err
	}
	s.sampler = serving.NewSampler(ctx, api, "kubectl-tinker")
	return nil
}

// client returns a client that tries again for as long as the request lasts, and prints its retries.
func (s *source) client(ctx context.Context) (*tinkerclient.Client, error) {
	return s.endpoint.Client(func(message string) {
		if ctx.Err() == nil {
			fmt.Fprintln(s.env.Stderr, message)
		}
	}, func() {})
}

// openPath prepares a checkpoint without a run.
func (s *source) openPath(ctx context.Context) error {
	path, err := tinker.ParsePath(s.path)
	if err != nil {
		return cli.Misused("%w", err)
	}
	if path.Kind != tinker.KindSampler {
		return cli.Misused("%s is a state to train on: give the path of sampler weights, "+
			"tinker://RUN/sampler_weights/NAME", s.path)
	}
	if cmp.Or(s.baseURL, s.env.Getenv(baseURLVariable)) == "" || s.env.Getenv(keyVariable) == "" {
		return cli.Misused("a tinker:// path needs the endpoint, by --base-url or %s, and its key, by %s", baseURLVariable,
			keyVariable)
	}
	if s.endpoint, err = checkpoints.EndpointOf(ctx, s.env, nil, s.run, s.baseURL); err != nil {
		return err
	}
	name := s.choice.model
	if name == "" {
		api, err := s.client(ctx)
		if err != nil {
			return err
		}
		info, err := api.WeightsInfo(ctx, s.path)
		if err != nil {
			return fmt.Errorf("asking for the base model of %s: %w; name it with --model", s.path, err)
		}
		name = info.BaseModel
	}
	s.model, err = desired.ModelOf(v1alpha1.Model{Name: name, LoraRank: new(int32(1)), Seed: new(int64(0))},
		s.env.Now(), nil)
	s.defaults.MaxTokens = cmp.Or(s.maxTokens, defaultTokens)
	return err
}

// defaultTokens bounds a reply if neither the command line nor the run does.
const defaultTokens = 1024

// openRun prepares the checkpoints of a run, in the format that its newest learner was given.
func (s *source) openRun(ctx context.Context) error {
	file, err := s.runFile(ctx)
	if err != nil {
		return err
	}
	if file != nil {
		s.model = file.Fixed.Model
		s.run.Spec.Tinker.BaseURL = cmp.Or(s.run.Spec.Tinker.BaseURL, file.Fixed.BaseURL)
	} else if s.model, err = s.modelOfSpec(ctx); err != nil {
		return err
	}
	s.setDefaults()
	s.endpoint, err = checkpoints.Open(ctx, s.env, s.kube, s.run, s.baseURL)
	return err
}

// close ends everything that open has started, even if the context has ended.
func (s *source) close(ctx context.Context) error {
	if s.sampler != nil {
		s.sampler.Close()
	}
	return s.endpoint.Close(ctx)
}

// runFile returns the run file of the run's newest learner; nil if the cluster no longer has it.
func (s *source) runFile(ctx context.Context) (*contract.RunFile, error) {
	attempts := s.run.Status.Attempts
	for i := len(attempts) - 1; i >= 0; i-- {
		var object corev1.ConfigMap
		key := client.ObjectKey{Namespace: s.run.Namespace, Name: desired.RunFileName(s.run, attempts[i].Number)}
		err := s.kube.Get(ctx, key, &object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the run file: %w", err)
		}
		file, err := contract.DecodeRunFile([]byte(object.Data[contract.RunFileName]))
		if err != nil {
			return nil, nil //nolint:nilerr // Another version wrote it. The spec says the same.
		}
		return &file, nil
	}
	return nil, nil
}

// modelOfSpec returns the model of a run by its spec.
func (s *source) modelOfSpec(ctx context.Context) (contract.Model, error) {
	var text *string
	if ref := desired.TemplateKey(s.run.Spec.Model); ref != nil {
		var object corev1.ConfigMap
		if err := s.kube.Get(ctx, client.ObjectKey{Namespace: s.run.Namespace, Name: ref.Name}, &object); err != nil {
			return contract.Model{}, fmt.Errorf("reading the chat template: %w", err)
		}
		text = new(object.Data[ref.Key])
	}
	return desired.ModelOf(s.run.Spec.Model, s.run.CreationTimestamp.Time, text)
}

// setDefaults takes the sampling of the run if the command line has none.
func (s *source) setDefaults() {
	var uses []playing.Sampling
	for _, use := range desired.EvaluationUses(s.run) {
		uses = append(uses, use.Sampling)
	}
	for _, use := range s.run.Spec.Environments {
		uses = append(uses, use.Sampling)
	}
	if len(uses) > 0 {
		if uses[0].Temperature != nil && !s.temperatureGiven() {
			s.defaults.Temperature = *uses[0].Temperature
		}
		s.defaults.MaxTokens = cmp.Or(s.defaults.MaxTokens, int(uses[0].MaxTokens))
	}
	s.defaults.MaxTokens = cmp.Or(s.defaults.MaxTokens, defaultTokens)
}

// weights returns the weights that the command line chooses now.
func (s *source) weights(ctx context.Context, step int64, best bool) (serving.Weights, error) {
	if s.kube == nil {
		return serving.Weights{Path: s.path}, nil
	}
	chosen, err := checkpoints.Choose(s.run, step, best)
	if err != nil {
		return serving.Weights{}, err
	}
	one := []v1alpha1.Checkpoint{chosen}
	if err := s.endpoint.AddSamplers(ctx, s.env, one); err != nil {
		return serving.Weights{}, err
	}
	if one[0].Sampler == "" {
		return serving.Weights{}, fmt.Errorf("the checkpoint of step %d has no sampler weights: choose another one of "+
			"kubectl tinker checkpoints list %s", chosen.Step, s.run.Name)
	}
	return serving.Weights{Path: one[0].Sampler, Step: chosen.Step}, nil
}

// base returns the weights of the base model.
func (s *source) base() serving.Weights { return serving.Weights{Base: s.model.Name} }

// modelWith returns weights with the settings for sampling from them.
func (s *source) modelWith(from serving.Weights) serving.Model {
	const longest = 8
	return serving.Model{Format: s.format, Sampler: s.sampler, Weights: from,
		Pieces: serving.Pieces{First: s.streamTokens, Most: longest * s.streamTokens}}
}
