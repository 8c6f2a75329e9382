// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opening

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// ResumeError says that the run which resumeFrom names cannot be continued.
type ResumeError struct {
	UID     string
	Problem string
}

// Error names the run, the cause and the repair.
func (e *ResumeError) Error() string {
	return fmt.Sprintf("Run %s (spec.resumeFrom) cannot be continued: %s", e.UID, e.Problem)
}

// split separates the run's own states from the states of the run that it continues, and keeps their order.
func (*Opener) split(states []checkpoints.Entry) (own, former []checkpoints.Entry) {
	for _, state := range states {
		if state.Former {
			former = append(former, state)
		} else {
			own = append(own, state)
		}
	}
	return own, former
}

// withFormer returns the states from which the run can resume: its own, then the states of the run that it continues. A
// run that is to continue another must not begin anew, so withFormer returns a ResumeError if there is no state.
func (o *Opener) withFormer(own, former []checkpoints.Entry) ([]checkpoints.Entry, error) {
	if o.File.ResumeFrom == "" || o.File.Fixed.Algorithm == nil {
		return own, nil
	}
	err := o.checkFormer(former)
	switch {
	case err != nil && len(own) > 0:
		return own, nil // The former run was adopted before.
	case err != nil:
		return nil, err
	}
	return append(own, slices.DeleteFunc(former, o.hasOtherOrigin)...), nil
}

// checkFormer makes sure that the newest state of the former run was made with the settings of this run.
func (o *Opener) checkFormer(former []checkpoints.Entry) error {
	if len(former) == 0 {
		return o.refuse("neither the endpoint nor the artifact store knows a state of it. Correct the uid, or remove " +
			"resumeFrom to begin anew.")
	}
	newest := former[0]
	same, known := o.sameOrigin(newest)
	switch {
	case !known:
		return o.refuse("nothing says with which settings it made step %d. Give the artifacts of that run, or remove "+
			"resumeFrom and begin "+
			"with the weights alone: initFrom.checkpoint.", newest.Name.Step)
	case !same:
		return o.refuse("it made step %d with other settings%s. Restore what they were, or remove resumeFrom.",
			newest.Name.Step, o.differing())
	}
	return nil
}

func (o *Opener) refuse(format string, args ...any) error {
	return &ResumeError{UID: o.File.ResumeFrom, Problem: fmt.Sprintf(format, args...)}
}

// sameOrigin reports whether a state descends from the version 0 of this run's settings, as names and rows record it,
// or else whether the model that saved it was made with these settings.
func (o *Opener) sameOrigin(state checkpoints.Entry) (same, known bool) {
	origin, known := o.Book.Origin(state)
	if !known {
		origin, known = o.Rows.Origin(state.Name.Version())
	}
	if known {
		return origin == rl.Genesis(o.File.SpecDigest), true
	}
	path, err := tinker.ParsePath(state.Path)
	if err != nil {
		return false, false
	}
	digest := o.models[path.Run][trainee.MetadataSpec]
	return digest == o.File.SpecDigest, digest != ""
}

// differing names the fields that differ from the former run's spec, if its run file is known.
func (o *Opener) differing() string {
	if o.Former == nil {
		return ""
	}
	was, is := o.Former.Fixed, o.File.Fixed
	var fields []string
	for _, field := range []struct {
		name    string
		was, is any
	}{
		{"model", undated(was.Model), undated(is.Model)}, {"tinker.baseURL", was.BaseURL, is.BaseURL},
		{"environments", was.Environments, is.Environments}, {"algorithm", was.Algorithm, is.Algorithm},
		{"initFrom", was.InitFrom, is.InitFrom},
	} {
		if !reflect.DeepEqual(field.was, field.is) {
			fields = append(fields, "spec."+field.name)
		}
	}
	if was.Model.Date != is.Model.Date {
		fields = append(fields, "spec.model.date, which was "+was.Model.Date)
	}
	if len(fields) == 0 {
		return ""
	}
	return ": " + strings.Join(fields, ", ")
}

func undated(m contract.Model) contract.Model {
	m.Date = ""
	return m
}

// namesakes are the newest steps of other runs of the same namespace and name, by their uids.
type namesakes map[string]contract.EarlierRun

// add notes a checkpoint of another run that has this run's name.
func (n namesakes) add(o *Opener, c tinker.Checkpoint) {
	path, err := tinker.ParsePath(c.TinkerPath)
	if err != nil {
		return
	}
	metadata := o.models[path.Run]
	name, err := rl.ParseCheckpointName(path.Name)
	uid := metadata[trainee.MetadataRun]
	own := o.File.Run.Namespace + "/" + o.File.Run.Name
	if err != nil || metadata[trainee.MetadataName] != own || uid == o.File.Run.UID || name.Run != rl.RunTag(uid) ||
		name.Step <= n[uid].Step {
		return
	}
	n[uid] = contract.EarlierRun{UID: uid, Step: name.Step,
		SameSettings: metadata[trainee.MetadataSpec] == o.File.SpecDigest}
}

// newest returns the earlier run that is most valuable to a run that begins: a run with the same settings if there is
// one, and among several the run with the highest step. It returns nil for a run that continues another, or has
// committed a step itself.
func (n namesakes) newest(o *Opener) *contract.EarlierRun {
	own, _ := o.split(o.Book.States())
	if o.File.ResumeFrom != "" || o.File.Fixed.Algorithm == nil || slices.ContainsFunc(own,
		func(e checkpoints.Entry) bool { return e.Name.Step > 0 }) {
		return nil
	}
	best := o.Namesake
	for _, run := range n {
		if best == nil || before(run, *best) {
			best = &run
		}
	}
	return best
}

// before orders earlier runs, the most valuable first.
func before(a, b contract.EarlierRun) bool {
	if a.SameSettings != b.SameSettings {
		return a.SameSettings
	}
	return cmp.Or(cmp.Compare(b.Step, a.Step), cmp.Compare(a.UID, b.UID)) < 0
}
