// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Validate returns every problem of the file, each with its field's path. It checks resolved values; admission has
// checked the settings of the API.
func (f RunFile) Validate() error {
	var p problems
	err := CheckVersion("the run file", f.Version, "this build")
	p.require(err == nil, "version", "is invalid: %v", err)
	p.require(f.Run.Namespace != "" && f.Run.Name != "" && f.Run.UID != "", "run", "needs namespace, name and uid")
	p.require(f.Attempt >= 1, "attempt", "counts from 1")
	digest, err := SpecDigest(f.Fixed)
	p.require(err == nil && digest == f.SpecDigest, "specDigest", "is not the digest of fixed")
	f.Fixed.validate(&p)
	p.require(f.Fixed.Algorithm != nil || f.Evaluation != nil, "evaluation", "is needed where nothing is trained")
	if a := f.Algorithm(); a != nil {
		p.require(a.Steps > 0 || a.Epochs > 0 && f.Fixed.Supervised != nil, "steps", "must be at least 1")
	}
	p.require(f.Steps+f.Epochs == 0 || f.Fixed.Algorithm != nil && !f.Fixed.Algorithm.Optimizer.Schedule.Falls(), "steps",
		"must be in fixed, since the schedule depends on it")
	f.Evaluation.validate(&p)
	invalid := func(path, problem string) { p.require(false, path, "%s", problem) }
	f.Budget.Validate(f.Prices, invalid)
	p.require(!strings.ContainsAny(f.ResumeFrom, "/\\.") && (f.ResumeFrom == "" || f.ResumeFrom != f.Run.UID),
		"resumeFrom", "must be the uid of another run")
	p.require(f.LearnerAddress != "", "learnerAddress", "is needed")
	return p.join()
}

// Validate returns every problem of a definition.
func (d Definition) Validate() error {
	var p problems
	d.validate(&p, "definition")
	return p.join()
}

func (f Fixed) validate(p *problems) {
	f.Model.validate(p)
	p.require(strings.HasPrefix(f.BaseURL, "http://") || strings.HasPrefix(f.BaseURL, "https://"), "fixed.baseURL",
		"must be an http or https URL")
	p.require((f.Algorithm == nil) == (len(f.Environments) == 0 && f.Supervised == nil), "fixed.environments",
		"go with algorithm, unless there are rows: both or neither")
	p.require(len(f.Environments) == 0 || f.Supervised == nil, "fixed.environments", "must be empty beside supervised")
	f.Supervised.validate(p)
	validateEnvironments(p, "fixed.environments", f.Environments)
	if f.InitFrom != nil {
		p.require(strings.HasPrefix(f.InitFrom.Checkpoint, "tinker://"), "fixed.initFrom.checkpoint",
			"must be a tinker:// path")
	}
}

func (m Model) validate(p *problems) {
	p.require(m.Name != "", "fixed.model.name", "is needed")
	p.require(m.Renderer != "", "fixed.model.renderer", "is needed")
	p.require((m.Renderer == RendererTemplate) == (m.Template != nil), "fixed.model.template",
		"goes with the renderer %q", RendererTemplate)
	p.require(m.Template == nil || m.Template.Unread != nil || (m.Template.Text == "") != (m.Template.Repository == ""),
		"fixed.model.template", "has one of text and repository")
}

func (e *Evaluation) validate(p *problems) {
	if e == nil {
		return
	}
	p.require(len(e.Environments)+len(e.HeldOut) > 0, "evaluation.environments", "must not be empty")
	validateEnvironments(p, "evaluation.environments", e.Environments)
}

// problems collects the invalid fields, sorted by path in the end.
type problems struct{ found []string }

func (p *problems) require(ok bool, path, format string, args ...any) {
	if ok {
		return
	}
	p.found = append(p.found, path+" "+fmt.Sprintf(format, args...))
}

func (p *problems) join() error {
	slices.Sort(p.found)
	errs := make([]error, len(p.found))
	for i, text := range p.found {
		errs[i] = errors.New(text)
	}
	return errors.Join(errs...)
}
