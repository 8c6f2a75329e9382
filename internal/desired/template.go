// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/renderer/templated"
)

// TemplateKey returns the ConfigMap key that has a model's chat template; nil if the template is elsewhere.
func TemplateKey(m v1alpha1.Model) *ref.ConfigMapKey {
	if asked := templateAsked(m); asked != nil {
		return asked.ConfigMapKeyRef
	}
	return nil
}

// Untested names the parts of a model's format that were not compared with the reference; "" if there are none, as for
// most known models with a built-in renderer.
func Untested(m v1alpha1.Model) string {
	model, unknown := models.Lookup(m.Name)
	template := templateAsked(m) != nil
	meant := ""
	if near := nearestModel(unknown); near != "" {
		meant = " Did you mean " + near + "?"
	}
	reason, served := models.UntestedTemplate(m.Name)
	switch {
	case unknown != nil && template && served:
		return fmt.Sprintf("The chat template and the tokenizer of %s were not compared with those of another program: %s. "+
			"To compare them, run: kubectl tinker render --check.", m.Name, reason)
	case unknown != nil && template:
		return fmt.Sprintf("The operator does not know the model %s: its chat template and its tokenizer were not compared "+
			"with those of another program. To compare them, run: kubectl tinker render --check.%s", m.Name, meant)
	case unknown != nil:
		return fmt.Sprintf("The operator does not know the model %s: its tokenizer, and whether %s is its format, were not "+
			"compared with another program. To compare them, run: kubectl tinker render --check.%s", m.Name, m.Renderer.Name,
			meant)
	case template:
		return "The chat template of the spec was not compared with another program."
	case model.Untested != "":
		return fmt.Sprintf("Not everything of %s was compared with another program: %s. To compare its prompts with those "+
			"of its chat template, run: kubectl tinker render --check.", m.Name, model.Untested)
	}
	return ""
}

// templateAsked returns the template that renders a model: the template that the spec asks for, or the model's own
// template if the model is not known; nil if a built-in renderer renders the model.
func templateAsked(m v1alpha1.Model) *v1alpha1.Template {
	if m.Renderer != nil {
		return m.Renderer.Template
	}
	if _, unknown := models.Lookup(m.Name); unknown != nil {
		return &v1alpha1.Template{Repository: &v1alpha1.TemplateRepository{}}
	}
	return nil
}

// nearestModel returns the known model whose name is nearest to an unknown name; "" if there is none.
func nearestModel(err error) string {
	if unknown, ok := errors.AsType[*models.UnknownError](err); ok {
		return unknown.Nearest()
	}
	return ""
}

var repositoryName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ownRepository returns the repository of the hub after which a model is named.
func ownRepository(name string, unknown error) (string, error) {
	base, _, _ := strings.Cut(name, ":") // The rest names a variant of the same model.
	if !repositoryName.MatchString(base) || strings.EqualFold(base, nearestModel(unknown)) {
		return "", unacceptable(problem.FormatUnknown, "%v", unknown)
	}
	return base, nil
}

// templateOf returns the template that a spec asks for. text is the template of the ConfigMap; nil if it has not been
// read.
func templateOf(asked v1alpha1.Template, model contract.Model, text *string) (*contract.Template, error) {
	template := &contract.Template{SHA256: asked.SHA256}
	if asked.Repository != nil {
		if t := model.Tokenizer; t != nil && t.Repository != "" {
			template.Repository, template.Revision = t.Repository, t.Revision
			return template, nil
		}
		base, _, _ := strings.Cut(model.Name, ":")
		if model.Tokenizer == nil || !repositoryName.MatchString(base) {
			return nil, unacceptable(problem.TemplateUnusable,
				"the model %s has no repository at the hub: give the template with inline or configMapKeyRef", model.Name)
		}
		template.Repository = base
		return template, nil
	}
	switch template.Text = asked.Inline; {
	case asked.ConfigMapKeyRef != nil && text == nil:
		template.Unread = asked.ConfigMapKeyRef
		return template, nil
	case asked.ConfigMapKeyRef != nil:
		template.Text = *text
	}
	if err := templated.Check(template.Text); err != nil {
		return nil, unacceptable(problem.TemplateUnusable, "%v", err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(template.Text)))
	if template.SHA256 != "" && template.SHA256 != sum {
		return nil, unacceptable(problem.TemplateUnusable, "it has sha256 %s, and model.renderer.template.sha256 is %s", sum,
			template.SHA256)
	}
	template.SHA256 = sum
	return template, nil
}
