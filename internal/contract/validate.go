// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/finite"
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
	f.Algorithm.validate(p)
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

func (a *Algorithm) validate(p *problems) {
	if a == nil {
		return
	}
	p.require(a.TasksPerStep >= 1, "fixed.algorithm.tasksPerStep", "must be at least 1")
	p.require(a.Steps >= 1, "fixed.algorithm.steps", "must be at least 1")
	p.require(a.Substeps >= 1, "fixed.algorithm.substeps", "must be at least 1")
	p.require(!a.OwnSlots || a.Refill, "fixed.algorithm.ownSlots", "needs refill")
	p.require(a.Lag >= 0, "fixed.algorithm.lag", "must be at least 0")
	p.require(a.Lag == 0 || a.Loss.Name.Clips(), "fixed.algorithm.lag", "above 0 needs the loss ppo or cispo")
	oneOf(p, "fixed.algorithm.grouping", a.Grouping, "", GroupingStep, GroupingEpisode)
	a.Advantage.validate(p, "fixed.algorithm.advantage")
	a.Loss.validate(p, "fixed.algorithm.loss")
	p.require(len(a.Roles) <= MaxRoles, "fixed.algorithm.roles", "has %d entries, more than %d", len(a.Roles), MaxRoles)
	for i, role := range a.Roles {
		path := fmt.Sprintf("fixed.algorithm.roles[%d]", i)
		p.require(role.Name != "" && IsRole(role.Name), path+".name", "%q is invalid: %s", role.Name, RoleRule)
		p.require(i == 0 || role.Name > a.Roles[i-1].Name, path+".name", "%q is not sorted behind the one before it",
			role.Name)
		p.require(a.Lag == 0 || role.Loss.Name.Clips(), path+".loss", "must be ppo or cispo with a lag above 0")
		role.Advantage.validate(p, path+".advantage")
		role.Loss.validate(p, path+".loss")
	}
	a.KL.validate(p)
	a.Optimizer.validate(p)
}

func (k *KL) validate(p *problems) {
	if k == nil {
		return
	}
	const path = "fixed.algorithm.kl"
	p.require(finite.Is(k.Coefficient) && k.Coefficient > 0, path+".coefficient", "must be above 0")
	p.require(k.Discount >= 0 && k.Discount <= 1, path+".discount", "must be from 0 to 1")
	p.require((k.Reference.Model != "") != (k.Reference.Checkpoint != ""), path+".reference",
		"needs exactly one of model and checkpoint")
	p.require(k.Reference.Checkpoint == "" || strings.HasPrefix(k.Reference.Checkpoint, "tinker://") &&
		strings.Contains(k.Reference.Checkpoint, "/sampler_weights/"),
		path+".reference.checkpoint", "must be tinker://RUN/sampler_weights/NAME")
}

func (a Advantage) validate(p *problems, path string) {
	oneOf(p, path+".baseline", a.Baseline, BaselineGroupMean, BaselineLeaveOneOut, BaselineBatchMean, BaselineNone)
	oneOf(p, path+".scale", a.Scale, ScaleNone, ScaleGroupStd, ScaleBatchStd)
	p.require(a.DDoF == 0 || a.DDoF == 1, path+".ddof", "must be 0 or 1")
}

// lossSettings are the settings of each loss as the Tinker API names them; all are always sent.
var lossSettings = map[LossName][]string{
	LossImportanceSampling: nil,
	LossPPO:                {SettingClipHigh, SettingClipLow},
	LossCISPO:              {SettingClipHigh, SettingClipLow},
}

func (l Loss) validate(p *problems, path string) {
	wanted, known := lossSettings[l.Name]
	p.require(known, path+".name", "is %q; losses are importance_sampling, ppo and cispo", l.Name)
	if !known {
		return
	}
	given := make([]string, 0, len(l.Config))
	for name, value := range l.Config {
		given = append(given, name)
		p.require(finite.Is(value), path+".config", "%s is not a number", name)
	}
	slices.Sort(given)
	p.require(slices.Equal(given, wanted), path+".config", "of %s has exactly %v, not %v", l.Name, wanted, given)
}

func (o Optimizer) validate(p *problems) {
	const path = "fixed.algorithm.optimizer"
	p.require(finite.Is(o.LearningRate) && o.LearningRate > 0, path+".learningRate", "must be above 0")
	oneOf(p, path+".schedule", o.Schedule, ScheduleConstant, ScheduleLinear, ScheduleCosine)
	p.require(o.WarmupSteps >= 0, path+".warmupSteps", "must be at least 0")
	p.require(o.Beta1 >= 0 && o.Beta1 < 1 && o.Beta2 >= 0 && o.Beta2 < 1, path, "needs beta1 and beta2 from 0 to below 1")
	p.require(finite.Is(o.Epsilon) && o.Epsilon > 0, path+".epsilon", "must be above 0")
	p.require(finite.Is(o.WeightDecay) && o.WeightDecay >= 0, path+".weightDecay", "must be at least 0")
	p.require(finite.Is(o.GradClipNorm) && o.GradClipNorm >= 0, path+".gradClipNorm", "must be at least 0")
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
