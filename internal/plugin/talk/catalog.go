// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package talk

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/serving"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// baseName and bestName follow the name of a run and an @ in names of models.
const (
	baseName = "base"
	bestName = "best"
)

// catalog has the checkpoints of a source by the names of models. It follows a run that trains.
type catalog struct {
	source *source
	// names are the names of the chosen checkpoint.
	names []string
	// age is the time for which the known state of the run is used.
	age time.Duration

	mu   sync.Mutex
	read time.Time
	// served is the step that was served last under the names.
	served int64
	// found are the weights that were found, by the chosen step and the run's latest and best checkpoints.
	found map[string]serving.Weights
}

func newCatalog(from *source, names []string) *catalog {
	if len(names) == 0 {
		names = []string{from.run.Name}
		if from.kube == nil {
			names = []string{from.path}
		}
	}
	return &catalog{source: from, names: names, age: 5 * time.Second, served: -1, read: from.env.Now(),
		found: map[string]serving.Weights{}}
}

// Names implements serving.Catalog.
func (c *catalog) Names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := slices.Clone(c.names)
	if c.source.kube == nil {
		return append(names, c.names[0]+"@"+baseName)
	}
	run := c.source.run
	var steps []int64
	for _, known := range run.Status.Checkpoints {
		steps = append(steps, known.Step)
	}
	slices.Sort(steps)
	for _, step := range slices.Backward(slices.Compact(steps)) {
		names = append(names, fmt.Sprintf("%s@%d", c.names[0], step))
	}
	if status.Best(&run.Status) != nil {
		names = append(names, c.names[0]+"@"+bestName)
	}
	return append(names, c.names[0]+"@"+baseName)
}

// Model implements serving.Catalog.
func (c *catalog) Model(ctx context.Context, name string) (serving.Model, error) {
	step, best, base, ok := c.parse(name)
	if !ok {
		return serving.Model{}, &serving.UnknownModelError{Message: fmt.Sprintf("The model %.80q does not exist. The "+
			"models are %s.", name, strings.Join(c.Names(), ", "))}
	}
	if base {
		return c.source.modelWith(c.source.base()), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh(ctx)
	found, err := c.weights(ctx, step, best)
	if err != nil {
		return serving.Model{}, &serving.UnknownModelError{Message: fmt.Sprintf("The model %.80q cannot be served: %v.", name,
			err)}
	}
	if slices.Contains(c.names, name) && found.Step != c.served {
		if c.served >= 0 {
			fmt.Fprintf(c.source.env.Stderr, "%s is the checkpoint of step %d now\n", name, found.Step)
		}
		c.served = found.Step
	}
	return c.source.modelWith(found), nil
}

// parse returns the checkpoint that a name of a model stands for.
func (c *catalog) parse(name string) (step int64, best, base, ok bool) {
	if slices.Contains(c.names, name) {
		return c.source.step, c.source.best, false, true
	}
	of, which, found := strings.Cut(name, "@")
	if !found || of != c.names[0] {
		return 0, false, false, false
	}
	if which == baseName {
		return 0, false, true, true
	}
	if c.source.kube == nil {
		return 0, false, false, false
	}
	if which == bestName {
		return -1, true, false, true
	}
	step, err := strconv.ParseInt(which, 10, 64)
	return step, false, false, err == nil && step >= 0
}

// refresh reads the run again. If the cluster does not answer, the known state stays.
func (c *catalog) refresh(ctx context.Context) {
	s := c.source
	if s.kube == nil || s.env.Now().Sub(c.read) < c.age {
		return
	}
	c.read = s.env.Now()
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	run, err := s.kube.Run(ctx, s.run.Name)
	if err != nil {
		fmt.Fprintf(s.env.Stderr, "the run cannot be read, so that its newest checkpoint is not known: %v\n", err)
		return
	}
	run.Spec.Tinker = s.run.Spec.Tinker
	s.run = run
}

// weights returns the weights of a step. The endpoint is asked for them once.
func (c *catalog) weights(ctx context.Context, step int64, best bool) (serving.Weights, error) {
	key := fmt.Sprint(step, best, c.source.run.Status.LatestCheckpoint, c.source.run.Status.BestCheckpoint)
	if known, ok := c.found[key]; ok {
		return known, nil
	}
	found, err := c.source.weights(ctx, step, best)
	if err == nil {
		c.found[key] = found
	}
	return found, err
}

var _ serving.Catalog = (*catalog)(nil)

// describe describes the served checkpoint.
func (c *catalog) describe(env cli.IO, from serving.Weights) {
	if c.source.kube == nil {
		fmt.Fprintf(env.Stderr, "serving %s\n", from.Path)
		return
	}
	follows := ""
	if c.source.step < 0 && !c.source.best && !status.RunFinished(c.source.run) {
		follows = ", and each newer one as it comes"
	}
	fmt.Fprintf(env.Stderr, "serving the checkpoint of step %d of %s%s\n", from.Step, c.source.run.Name, follows)
}
