// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/limit"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/rubricjudge"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/vocabulary"
)

// The names of the base models.
const (
	// ModelName is the base model that was pretrained on sums.
	ModelName = "tinkersim/byte-136k"
	// CountdownModelName is the base model that was pretrained on Countdown, as solver and as judge.
	CountdownModelName = "tinkersim/byte-136k-countdown"
	// SumsModelName is the base model that adds correctly. It can be the teacher when ModelName is distilled.
	SumsModelName = "tinkersim/byte-136k-sums"
)

// JudgeName is the name of a frozen model that judges responses by rule, as package rubricjudge describes.
const JudgeName = "tinkersim/rubric-judge"

// Options configure a server. All fields but Dir are optional.
type Options struct {
	// Dir is the directory of the checkpoints. One server uses it at a time.
	Dir string
	// APIKey is the only key that is accepted. When it is empty, every key that begins with "tml-" is accepted.
	APIKey string
	// Aliases are further names of the base model ModelName, for clients that only accept certain names.
	Aliases []string
	// Vocabularies are further base models by OWNER/NAME: the same network with the tokens of the vocabulary.
	Vocabularies map[string]*vocabulary.Vocabulary
	// Admin adds the endpoints under /admin.
	Admin bool
	// Dialect makes the server behave like servers that differ from the API: dialect.NameJSON or dialect.NameSkyRL.
	Dialect string
	// PollHold is the time for which the dialect of SkyRL holds a poll; 300 s by default.
	PollHold time.Duration
	// Faults are active from the start.
	Faults []fault.Rule
	// Config is the configuration that clients fetch from the server. With PJWTAuthEnabled, they exchange
	// their keys for tokens that are valid for ten minutes.
	Config *tinker.ServerConfig

	// Log receives warnings about problems of the directory; they are discarded by default.
	Log *slog.Logger
	// Clock returns the current time, for expiry and for listings; time.Now by default.
	Clock func() time.Time
	// Random is the source of ids and secrets; crypto/rand by default. No result depends on it.
	Random io.Reader

	// PollPatience is the time for which a poll waits for a result; 30 s by default.
	PollPatience time.Duration
	// GapPatience is the time for which chunks wait for a missing number; 10 s by default.
	GapPatience time.Duration
	// SessionTimeout is the time without a heartbeat or a request after which a session ends; 10 min by default.
	SessionTimeout time.Duration
	// MetadataBytes is the size from which a result is announced by its metadata alone, if the client allows it; 8 MiB
	// by default.
	MetadataBytes int

	// SampleNoise is the standard deviation of noise that is added to the logits of each sample, so that equal
	// requests differ as they do on hardware with inexact arithmetic; none by default. It is a function of the
	// seed and of the request id.
	SampleNoise float64

	// Latency simulates the times of another server's operations; none by default. LatencyObserver is called with each
	// operation and its times; it may be nil.
	Latency         latency.Profile
	LatencyObserver func(latency.Event)

	// Limits refuse requests with 429; none by default.
	Limits limit.Limits

	// TrainingSlots is the number of models that are trained at the same time; 2 by default.
	TrainingSlots int
	// SampleRows is the number of completions that are decoded together; 256 by default.
	SampleRows int
}

// withDefaults returns the options with defaults for the fields that are zero.
func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Random = cmp.Or(o.Random, rand.Reader)
	if o.Config == nil {
		config := tinker.DefaultServerConfig()
		config.ParallelChunks = false
		config.UsePyqwestTransport = false
		o.Config = &config
	}
	o.PollPatience = cmp.Or(o.PollPatience, 30*time.Second)
	o.GapPatience = cmp.Or(o.GapPatience, 10*time.Second)
	o.SessionTimeout = cmp.Or(o.SessionTimeout, 10*time.Minute)
	o.MetadataBytes = cmp.Or(o.MetadataBytes, 8<<20)
	o.TrainingSlots = cmp.Or(o.TrainingSlots, 2)
	o.Limits.RetryAfter = cmp.Or(o.Limits.RetryAfter, time.Second)
	return o
}

// validate checks the noise, and that each base model has one vocabulary.
func (o Options) validate() error {
	if !(o.SampleNoise >= 0) || math.IsInf(o.SampleNoise, 0) {
		return fmt.Errorf("the sample noise must be at least 0 and finite, not %g", o.SampleNoise)
	}
	for name := range o.Vocabularies {
		if slices.Contains(slices.Concat([]string{ModelName, CountdownModelName, SumsModelName}, o.Aliases), name) {
			return fmt.Errorf("the base model %s cannot have a vocabulary of its own and the built-in one", name)
		}
	}
	return nil
}

// stateOptions returns the options of the server's state.
func (o Options) stateOptions(forced *sampling.ForcedSamples, times *latency.Simulator) state.Options {
	vocabularies := map[string]model.Vocabulary{}
	for name, v := range o.Vocabularies {
		vocabularies[name] = v
	}
	return state.Options{
		Dir:             o.Dir,
		BaseModels:      slices.Concat([]string{ModelName}, o.Aliases),
		CountdownModels: []string{CountdownModelName},
		SumsModels:      []string{SumsModelName},
		Vocabularies:    vocabularies,
		Rules:           map[string]func(string) string{JudgeName: rubricjudge.Reply},
		ForcedSamples:   forced,
		Log:             o.Log,
		Clock:           o.Clock,
		Random:          o.Random,
		GapPatience:     o.GapPatience,
		SessionTimeout:  o.SessionTimeout,
		TrainingSlots:   o.TrainingSlots,
		SampleNoise:     o.SampleNoise,
		SampleRows:      o.SampleRows,
		Latency:         times,

		AverageGradients: o.Dialect == dialect.NameSkyRL,
		KeepSamplers:     o.Dialect == dialect.NameSkyRL,
	}
}
