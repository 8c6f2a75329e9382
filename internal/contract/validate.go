// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Validate returns every problem of the file, each with its field's path.
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
	f.Checkpoints.validate(&p, f.Fixed.Algorithm != nil)
	f.Evaluation.validate(&p)
	invalid := func(path, problem string) { p.require(false, path, "%s", problem) }
	f.Tracking.Validate(invalid)
	f.Budget.Validate(f.Prices, invalid)
	p.require(!strings.ContainsAny(f.ResumeFrom, "/\\.") && (f.ResumeFrom == "" || f.ResumeFrom != f.Run.UID),
		"resumeFrom", "must be the uid of another run")
	p.require(f.Concurrency >= 1, "concurrency", "must be at least 1")
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
	p.require((f.Algorithm == nil) == (len(f.Environments) == 0), "fixed.environments",
		"go with algorithm: both or neither")
	validateEnvironments(p, "fixed.environments", f.Environments)
	weighted := slices.ContainsFunc(f.Environments, func(e Environment) bool { return e.Weight > 0 })
	for i, e := range f.Environments {
		path := fmt.Sprintf("fixed.environments[%d]", i)
		p.require(e.GroupSize >= 2, path+".groupSize", "must be at least 2 to train")
		p.require(!weighted || e.Weight > 0, path+".weight", "is given for every environment or for none")
	}
	if f.InitFrom != nil {
		p.require(strings.HasPrefix(f.InitFrom.Checkpoint, "tinker://"), "fixed.initFrom.checkpoint",
			"must be a tinker:// path")
	}
}

func (m Model) validate(p *problems) {
	p.require(m.Name != "", "fixed.model.name", "is needed")
	p.require(m.LoraRank >= 1, "fixed.model.loraRank", "must be at least 1")
	p.require(m.TrainAttention || m.TrainMLP || m.TrainUnembed, "fixed.model", "must train at least one module")
	p.require(m.Renderer != "", "fixed.model.renderer", "is needed")
	if t := m.Tokenizer; t != nil {
		p.require((t.Repository != "") != (t.URL != ""), "fixed.model.tokenizer", "needs exactly one of repository and url")
		p.require(t.URL == "" || t.SHA256 != "", "fixed.model.tokenizer.sha256", "is needed with url")
	}
}

func (c Checkpoints) validate(p *problems, trains bool) {
	for path, value := range map[string]int64{
		"everySteps": c.EverySteps, "ttlSeconds": c.TTLSeconds, "rollingEverySteps": c.RollingEverySteps,
		"rollingTTLSeconds": c.RollingTTLSeconds, "keepLast": int64(c.KeepLast), "keepBestCount": int64(c.KeepBestCount),
	} {
		p.require(value >= 0, "checkpoints."+path, "must be at least 0")
	}
	p.require(!trains || c.EverySteps > 0 || c.RollingEverySteps > 0, "checkpoints",
		"save nothing: set everySteps or rollingEverySteps")
}

func (e *Evaluation) validate(p *problems) {
	if e == nil {
		return
	}
	p.require(e.EverySteps >= 0, "evaluation.everySteps", "must be at least 0")
	p.require(e.SamplingShare >= 0 && e.SamplingShare <= 1, "evaluation.samplingShare", "must be 0 to 1")
	p.require(len(e.Environments) > 0, "evaluation.environments", "must not be empty")
	validateEnvironments(p, "evaluation.environments", e.Environments)
	for i, environment := range e.Environments {
		path := fmt.Sprintf("evaluation.environments[%d].passAt", i)
		for _, k := range environment.PassAt {
			p.require(k >= 1 && k <= environment.GroupSize, path, "has %d, but a task has %d samples", k, environment.GroupSize)
		}
	}
}

// problems collects what is wrong, sorted by path in the end.
type problems struct{ found []string }

func (p *problems) require(ok bool, path, format string, args ...any) {
	if ok {
		return
	}
	p.found = append(p.found, path+" "+fmt.Sprintf(format, args...))
}

func oneOf[T ~string](p *problems, path string, value T, values ...T) {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	p.require(slices.Contains(values, value), path, "is %q; it must be one of %s", value, strings.Join(names, ", "))
}

func (p *problems) join() error {
	slices.Sort(p.found)
	errs := make([]error, len(p.found))
	for i, text := range p.found {
		errs[i] = errors.New(text)
	}
	return errors.Join(errs...)
}
