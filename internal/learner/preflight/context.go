// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// lister lists the models that an endpoint serves.
type lister interface {
	Capabilities(ctx context.Context) (tinker.ServerCapabilities, error)
}

// ContextOf returns how many tokens an endpoint trains a model on at once; 0 if it does not say.
func ContextOf(ctx context.Context, api lister, model string) (int, error) {
	server, err := api.Capabilities(ctx)
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound, tinker.CategoryUnsupported:
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("asking for capabilities: %w", err)
	}
	for _, served := range server.SupportedModels {
		if served.ModelName == model {
			return served.MaxContextLength, nil
		}
	}
	return 0, nil
}

// checkContext fails if an environment of the run may request more tokens than the model's context has. The endpoint
// would refuse such requests one sample at a time. A context of 0 means that it is not known. A run that has a
// checkpoint does not fail: it was accepted, and its prompts may be shorter than their limit.
func checkContext(file contract.RunFile, context int) error {
	if context == 0 || len(file.KnownCheckpoints) > 0 {
		return nil
	}
	for _, use := range usesOf(file) {
		if err := checkUse(use, file.Fixed.Model.Name, context); err != nil {
			return err
		}
	}
	return nil
}

// checkUse fails for an environment whose first prompt and reply may exceed the context.
func checkUse(use use, model string, context int) error {
	reply, prompt := int(use.Sampling.MaxTokens), int(use.Limits.PromptTokens)
	trajectory := int(use.Limits.TrajectoryTokens)
	switch {
	case trajectory > 0 && trajectory <= context:
		return nil // prompt and reply together are never longer
	case prompt == 0 && reply >= context:
		return Await(problem.ContextTooShort,
			"%s.sampling.maxTokens is %d, but the context of %s has %d tokens at this endpoint, prompt "+
				"included: set it to at most %d, or set limits.trajectoryTokens to at most %d", use.path, reply, model, context,
			context-1, context)
	case prompt+reply > context:
		return Await(problem.ContextTooShort,
			"%s.limits.promptTokens %d and sampling.maxTokens %d make %d tokens, but the context of %s has "+
				"%d at this endpoint: lower one of them, or set limits.trajectoryTokens to at most %d",
			use.path, prompt, reply, prompt+reply, model, context, context)
	}
	return nil
}

// checkTeachers fails if a teacher of the run may have to read more tokens than fit into its context: the tokens that
// the policy read and sampled, the teacher's system prompt, and the one token that each request samples.
func (c *Checker) checkTeachers(ctx context.Context, known []tinker.SupportedModel) error {
	if len(c.File.KnownCheckpoints) > 0 {
		return nil
	}
	for _, env := range c.File.Fixed.Environments {
		if env.Teacher == nil {
			continue
		}
		name, err := c.teacherModel(ctx, env)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(known, func(m tinker.SupportedModel) bool { return m.ModelName == name })
		if i < 0 || known[i].MaxContextLength == 0 {
			continue // checkScorers finds out whether the endpoint has it
		}
		system := 0
		if text := env.Teacher.SystemPrompt; text != "" && c.CountSystem != nil {
			if system, err = c.CountSystem(ctx, text); err != nil {
				return fmt.Errorf("counting the tokens of environments[%s].teacher.systemPrompt: %w", env.Name, err)
			}
		}
		if err := checkTeacher(env, name, system, known[i].MaxContextLength); err != nil {
			return err
		}
	}
	return nil
}

// teacherModel returns the name of the teacher's base model. It is empty for a checkpoint that the endpoint does not
// have, and the run's model if the endpoint does not report the base model of checkpoints.
func (c *Checker) teacherModel(ctx context.Context, env contract.Environment) (string, error) {
	if env.Teacher.Checkpoint == "" {
		return env.Teacher.Model, nil
	}
	info, err := c.API.WeightsInfo(ctx, env.Teacher.Checkpoint)
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound, tinker.CategoryUser:
		return "", nil
	case tinker.CategoryUnsupported:
		return c.File.Fixed.Model.Name, nil
	}
	if err != nil {
		return "", fmt.Errorf("asking of which model environments[%s].teacher.checkpoint is: %w", env.Name, err)
	}
	return cmp.Or(info.BaseModel, c.File.Fixed.Model.Name), nil
}

// checkTeacher fails for an environment whose conversations may exceed the teacher's context. If their length is not
// limited, it considers the first prompt and reply alone.
func checkTeacher(env contract.Environment, name string, system, context int) error {
	field, together, read := "limits.trajectoryTokens", "", int(env.Limits.TrajectoryTokens)
	if read == 0 {
		field, together = "limits.promptTokens and sampling.maxTokens", " together"
		read = int(env.Limits.PromptTokens) + int(env.Sampling.MaxTokens)
	}
	room := context - system - 1
	if read <= room {
		return nil
	}
	with, repair := "", fmt.Sprintf("lower %s to at most %d%s", field, room, together)
	if system > 0 {
		with, repair = fmt.Sprintf(", %d of teacher.systemPrompt", system), repair+", shorten teacher.systemPrompt"
	}
	if room < 1 {
		repair = "shorten teacher.systemPrompt"
	}
	if env.Teacher.Checkpoint != "" {
		name += ", of which the checkpoint is,"
	}
	return Await(problem.ContextTooShort,
		"environments[%s].teacher may have to read %d tokens by %s%s and one more, but the context of %s has %d tokens at "+
			"this endpoint: %s, or choose another teacher", env.Name, read, field, with, name, context, repair)
}
