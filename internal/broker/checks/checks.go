// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package checks knows the features that the server of a TinkerEndpoint supports. If a run asks for a feature that is
// not known yet, it checks the feature once for all runs, by package capability.
//
// A check is for one base model and one choice of the matrices that are trained. Its findings hold for a day, at one
// connection and for one version of the client, and are kept in a file, so that the next broker does not check again. A
// check that a broker's death interrupts leaves nothing in the file.
package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

const (
	// life is how long a finding holds. It is shorter than endpoint.CheckLife, so that a broker whose clock is behind the
	// manager's checks again all the same.
	life = endpoint.CheckLife - time.Hour
	// refusedLife is how long runs receive a refusal before their requests start another check.
	refusedLife = time.Minute
	// forgottenLife is how long a refusal is kept after a run last asked for it.
	forgottenLife = 10 * time.Minute
	// patience limits the time of a check. The client repeats requests that fail by an outage until then.
	patience = 10 * time.Minute
	// rounds is the number of times that a check tries a feature that it could not decide.
	rounds = 2
	// atOnce is how many checks run at once.
	atOnce = 2
)

// Config configures Checks.
type Config struct {
	// Dir is the folder with the records. One broker at a time may use it.
	Dir string
	// Run checks the features of a request at the server. knownJSON says that the server reads training data in JSON only.
	Run func(ctx context.Context, r tinker.CheckRequest, knownJSON bool) (capability.Report, error)
	// Lease returns why nothing may be recorded any more, or nil.
	Lease func() error
	// ClientVersion is the version of the client that checks.
	ClientVersion string
	Logger        *slog.Logger
	Now           func() time.Time
}

// RefusedError says that the server refused a check: another check would fail as well until somebody repairs the
// server, or chooses another model.
type RefusedError struct{ Message string }

// Error returns the server's message.
func (e *RefusedError) Error() string { return e.Message }

// Checks is safe for concurrent use.
type Checks struct {
	config Config
	// ctx is canceled by Close, which ends the checks in progress. slots limits their number.
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	slots   chan struct{}

	mu         sync.Mutex
	connection string
	known      map[key]*entry
	// writing is held while the file is written, the newest contents last.
	writing sync.Mutex
}

// key has the settings that decide the result of a check. The rank does not: a check's models have the lowest rank that
// the server accepts.
type key struct {
	model              string
	attn, mlp, unembed bool
}

func keyOf(r tinker.CheckRequest) key {
	return key{r.BaseModel, r.Lora.TrainAttn, r.Lora.TrainMLP, r.Lora.TrainUnembed}
}

// entry has the findings for a key.
type entry struct {
	endpoint.Check
	// asked is when a run asked last, and refusedAt when the server refused a check.
	asked, refusedAt time.Time
	// flight is the check in progress; nil if there is none.
	flight *flight
}

// flight is a check in progress. err is set before done is closed.
type flight struct {
	done chan struct{}
	err  error
}

// Open returns the checks of an earlier broker in the folder.
func Open(config Config) (*Checks, error) {
	c := &Checks{config: config, known: map[key]*entry{}, slots: make(chan struct{}, atOnce)}
	if err := c.read(); err != nil {
		return nil, err
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Close ends the checks in progress.
func (c *Checks) Close() {
	c.stop()
	c.running.Wait()
}

// SetConnection sets the digest of the connection. Findings with another connection do not hold.
func (c *Checks) SetConnection(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connection = digest
}

// Ask returns the findings about the features of a request, and checks the features that are not known. It returns
// false if the check has not ended before ctx does.
func (c *Checks) Ask(ctx context.Context, r tinker.CheckRequest) (endpoint.Check, bool, error) {
	r.Features = known(r.Features)
	for {
		found, flight, err := c.look(r)
		if flight == nil || err != nil {
			return found, err == nil, err
		}
		select {
		case <-flight.done:
		case <-ctx.Done():
			return endpoint.Check{}, false, nil
		}
		if flight.err != nil {
			return endpoint.Check{}, false, flight.err
		}
	}
}

// known returns the features that package capability has, each once.
func known(names []string) []string {
	all := capability.All()
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.Contains(all, capability.Feature(name))
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// look returns the findings about a request, or the check that will make them.
func (c *Checks) look(r tinker.CheckRequest) (endpoint.Check, *flight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.config.Now()
	e, err := c.entryOf(r, now)
	if err != nil {
		return endpoint.Check{}, nil, err
	}
	e.asked = now
	missing := r.Features
	if c.holds(e.Check, now) {
		missing = slices.DeleteFunc(slices.Clone(r.Features), e.Answers)
	} else if e.flight == nil {
		e.Check = endpoint.Check{Model: e.Model, TrainModules: e.TrainModules, Connection: c.connection,
			ClientVersion: c.config.ClientVersion, Refused: e.Refused}
	}
	switch {
	case len(missing) == 0:
		return clone(e.Check), nil, nil
	case e.flight != nil:
		return endpoint.Check{}, e.flight, nil
	case e.Refused != "" && now.Sub(e.refusedAt) < refusedLife:
		return endpoint.Check{}, nil, &RefusedError{e.Refused}
	}
	r.Features = missing
	e.flight = &flight{done: make(chan struct{})}
	usesJSON := slices.Contains(e.Unsupported, string(capability.Protobuf))
	c.running.Go(func() { c.fly(e, r, c.connection, usesJSON) })
	return endpoint.Check{}, e.flight, nil
}

// entryOf returns the entry of a request. The lock is held. The entry for which no run has asked the longest makes room
// for a new one.
func (c *Checks) entryOf(r tinker.CheckRequest, now time.Time) (*entry, error) {
	of := keyOf(r)
	if e := c.known[of]; e != nil {
		return e, nil
	}
	for len(c.known) >= endpoint.MaxChecks {
		var oldest *key
		for candidate, e := range c.known {
			if e.flight == nil && (oldest == nil || e.asked.Before(c.known[*oldest].asked)) {
				oldest = &candidate
			}
		}
		if oldest == nil {
			return nil, fmt.Errorf("%d checks are in progress", len(c.known))
		}
		delete(c.known, *oldest)
	}
	e := &entry{Check: endpoint.Check{Model: r.BaseModel, TrainModules: of.modules(), Connection: c.connection,
		ClientVersion: c.config.ClientVersion}, asked: now}
	c.known[of] = e
	return e, nil
}

// parts are the parts of the network, by the names of the TrainingRun's spec, sorted.
var parts = []struct {
	name   string
	trains func(*key) *bool
}{
	{"Attention", func(k *key) *bool { return &k.attn }},
	{"MLP", func(k *key) *bool { return &k.mlp }},
	{"Unembed", func(k *key) *bool { return &k.unembed }},
}

// modules returns the parts of the network that are trained.
func (k key) modules() []string {
	var names []string
	for _, part := range parts {
		if *part.trains(&k) {
			names = append(names, part.name)
		}
	}
	return names
}

// holds reports whether findings hold at this moment. The lock is held.
func (c *Checks) holds(found endpoint.Check, now time.Time) bool {
	return !found.CheckedAt.IsZero() && now.Sub(found.CheckedAt) < life && found.Connection == c.connection &&
		found.ClientVersion == c.config.ClientVersion
}

// fly runs a check and keeps its findings.
func (c *Checks) fly(e *entry, r tinker.CheckRequest, connection string, usesJSON bool) {
	report, err := c.check(r, usesJSON)
	c.mu.Lock()
	flight := e.flight
	e.flight = nil
	switch {
	case err == nil && connection == c.connection:
		take(&e.Check, report, r.Features)
		e.Refused = ""
		if e.CheckedAt.IsZero() {
			e.CheckedAt = c.config.Now().UTC()
		}
	case err == nil: // The connection has changed meanwhile: a run that waits makes another check.
	default:
		if isRefused(err) {
			e.Refused, e.refusedAt = err.Error(), c.config.Now()
			err = &RefusedError{e.Refused}
		}
		flight.err = err
	}
	c.mu.Unlock()
	if err == nil {
		c.write()
	}
	close(flight.done)
}

// check checks the features of a request, and checks again those that it could not decide.
func (c *Checks) check(r tinker.CheckRequest, usesJSON bool) (capability.Report, error) {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return capability.Report{}, fmt.Errorf("waiting for other checks: %w", ctx.Err())
	}
	var found capability.Report
	began := c.config.Now()
	for range rounds {
		report, err := c.config.Run(ctx, r, usesJSON)
		if err != nil {
			c.config.Logger.Warn("the server is not checked", "model", r.BaseModel, "err", err)
			return capability.Report{}, err
		}
		found = found.With(report)
		usesJSON = usesJSON || found.Of(capability.Protobuf) == capability.Unsupported
		r.Features = slices.DeleteFunc(slices.Clone(r.Features), func(name string) bool {
			return found.Of(capability.Feature(name)) != capability.Unknown
		})
		if len(r.Features) == 0 {
			break
		}
	}
	c.config.Logger.Info("the server is checked", "model", r.BaseModel, "seconds", c.config.Now().Sub(began).Seconds(),
		"ignored", found.List(capability.Ignored), "unsupported", found.List(capability.Unsupported),
		"undecided", r.Features)
	return found, nil
}

// take adds the findings about some features to the known ones.
func take(into *endpoint.Check, report capability.Report, features []string) {
	for f := range report.Findings {
		features = append(features, string(f))
	}
	slices.Sort(features)
	for _, name := range slices.Compact(features) {
		list := &into.Undecided
		switch report.Of(capability.Feature(name)) {
		case capability.Supported:
			list = &into.Supported
		case capability.Ignored:
			list = &into.Ignored
		case capability.Unsupported:
			list = &into.Unsupported
		}
		for _, other := range []*[]string{&into.Supported, &into.Ignored, &into.Unsupported, &into.Undecided} {
			*other = slices.DeleteFunc(*other, func(known string) bool { return known == name })
		}
		*list = append(*list, name)
		slices.Sort(*list)
	}
}

// isRefused reports whether the server refused the session or the model of a check, which every server has to permit.
func isRefused(err error) bool {
	switch client.CategoryFrom(err) {
	case tinker.CategoryUser, tinker.CategoryUnsupported:
		return !errors.Is(err, context.Canceled)
	}
	return false
}

// Report returns the known checks, at most endpoint.MaxChecks, in the order of models.
func (c *Checks) Report() []endpoint.Check {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.config.Now()
	var all []endpoint.Check
	for of, e := range c.known {
		switch {
		case e.flight != nil:
			found := clone(e.Check)
			found.Checking = true
			all = append(all, found)
		case e.CheckedAt.IsZero() && now.Sub(e.asked) >= forgottenLife:
			delete(c.known, of)
		case !e.CheckedAt.IsZero() || e.Refused != "":
			all = append(all, clone(e.Check))
		}
	}
	slices.SortFunc(all, func(a, b endpoint.Check) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), slices.Compare(a.TrainModules, b.TrainModules))
	})
	return all
}

func clone(of endpoint.Check) endpoint.Check {
	of.Supported, of.Ignored = slices.Clone(of.Supported), slices.Clone(of.Ignored)
	of.Unsupported, of.Undecided = slices.Clone(of.Unsupported), slices.Clone(of.Undecided)
	return of
}
