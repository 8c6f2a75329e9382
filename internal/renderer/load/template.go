// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/renderer/templated"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// The files of a repository with the template and with the names of special tokens.
const (
	templateFile = "chat_template.jinja"
	configFile   = "tokenizer_config.json"
)

// Template returns the template by which the renderer renders, with its text; nil if the renderer has the format of a
// family.
func (f *Renderer) Template() *contract.Template { return f.model.Template }

// TemplateError reports that a chat template cannot be used. A template of a repository may be repaired there.
type TemplateError struct{ Err error }

// Error implements error.
func (e *TemplateError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *TemplateError) Unwrap() error { return e.Err }

// forTemplate returns the renderer of a model by its template. The template is read from its repository if it has no
// text.
func forTemplate(ctx context.Context, files *fetch.Fetcher, model contract.Model,
	known models.Model) (*Renderer, error) {
	template := *model.Template
	if template.Text == "" || template.Names == nil {
		var err error
		if template, err = ReadTemplate(ctx, files, model, known); err != nil {
			return nil, err
		}
	}
	tokens, digest, err := tokens(ctx, files, model)
	if err != nil {
		return nil, err
	}
	date, err := time.Parse(time.DateOnly, model.Date)
	if err != nil && model.Date != "" {
		return nil, &Error{Err: fmt.Errorf("reading the date of the run: %w", err)}
	}
	r, err := templated.New(templated.Config{Template: template.Text, Tokens: tokens, Names: template.Names, Date: date})
	if err != nil {
		return nil, &TemplateError{Err: err}
	}
	model.Template = &template
	return &Renderer{
		Renderer: r, Tokens: tokens, Begin: special(tokens, template.Names["bos_token"]),
		End: special(tokens, template.Names["eos_token"]), model: model, digest: digest,
	}, nil
}

// ReadTemplate returns the template of a model with its text and the names of its special tokens. Its error is a
// *TemplateError, unless files cannot be read.
func ReadTemplate(ctx context.Context, files *fetch.Fetcher, model contract.Model,
	known models.Model) (contract.Template, error) {
	template := *model.Template
	config, err := readConfig(ctx, files, model)
	if err != nil {
		return template, err
	}
	if template.Text == "" {
		if template.Text, err = ownTemplate(ctx, files, template, config); err != nil {
			return template, err
		}
	}
	sum := sha256.Sum256([]byte(template.Text))
	if template.SHA256 != "" && template.SHA256 != hex.EncodeToString(sum[:]) {
		return template, &TemplateError{Err: fmt.Errorf("the template has sha256 %x, want %s", sum, template.SHA256)}
	}
	template.Names = config.names()
	for name, token := range map[string]string{"bos_token": known.Tokenizer.Begin, "eos_token": known.Tokenizer.End} {
		if _, ok := template.Names[name]; !ok && token != "" {
			template.Names[name] = token
		}
	}
	return template, nil
}

// tokenizerConfig is a tokenizer_config.json.
type tokenizerConfig map[string]json.RawMessage

// readConfig reads the tokenizer_config.json of the repository that the tokenizer comes from, or else the template. It
// is empty if there is none.
func readConfig(ctx context.Context, files *fetch.Fetcher, model contract.Model) (tokenizerConfig, error) {
	repository, revision := model.Template.Repository, model.Template.Revision
	if t := model.Tokenizer; t != nil && t.Repository != "" {
		repository, revision = t.Repository, t.Revision
	}
	if repository == "" {
		return nil, nil
	}
	data, found, err := readFile(ctx, files, fetch.Source{Repository: repository, Revision: revision, File: configFile})
	if err != nil || !found {
		return nil, err
	}
	var config tokenizerConfig
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, &TemplateError{Err: fmt.Errorf("reading %s of %s: %w", configFile, repository, err)}
	}
	return config, nil
}

// readFile reads a file of a repository, and reports whether it exists.
func readFile(ctx context.Context, files *fetch.Fetcher, source fetch.Source) (data []byte, found bool, err error) {
	data, _, err = files.File(ctx, source)
	if refused, ok := errors.AsType[*httpstatus.Error](err); ok && refused.Status == http.StatusNotFound {
		return nil, false, nil
	}
	return data, err == nil, err
}

// ownTemplate returns the template of a repository: its own file, or else the field of the configuration.
func ownTemplate(ctx context.Context, files *fetch.Fetcher, template contract.Template,
	config tokenizerConfig) (string, error) {
	data, found, err := readFile(ctx, files,
		fetch.Source{Repository: template.Repository, Revision: template.Revision, File: templateFile})
	if err != nil || found {
		return string(data), err
	}
	var text string
	if json.Unmarshal(config["chat_template"], &text) == nil && text != "" {
		return text, nil
	}
	var named []struct{ Name, Template string }
	if json.Unmarshal(config["chat_template"], &named) == nil {
		for _, t := range named {
			if t.Name == "default" {
				return t.Template, nil
			}
		}
	}
	return "", &TemplateError{Err: fmt.Errorf("the repository %s has no chat template: there is no %s, and %s has no "+
		"chat_template; give the template with inline or configMapKeyRef", template.Repository, templateFile, configFile)}
}

// names returns the special tokens that templates call by their purpose.
func (c tokenizerConfig) names() map[string]string {
	names := map[string]string{}
	for field, value := range c {
		var text string
		var token struct{ Content string }
		switch {
		case !strings.HasSuffix(field, "_token"):
		case json.Unmarshal(value, &text) == nil && text != "":
			names[field] = text
		case json.Unmarshal(value, &token) == nil && token.Content != "":
			names[field] = token.Content
		}
	}
	return names
}

// sameTemplate reports whether two templates render alike. A text without names has not been read yet.
func sameTemplate(own, other *contract.Template) bool {
	if own == nil || other == nil {
		return own == other
	}
	a, errA := own.Digest()
	b, errB := other.Digest()
	return errA == nil && errB == nil && a == b
}
