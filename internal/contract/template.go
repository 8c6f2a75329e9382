// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import "github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

// RendererTemplate is the Model.Renderer of a model whose conversations are rendered by a chat template. No renderer
// has this name, so that a build without templates refuses the run.
const RendererTemplate = "template"

// Template is a chat template.
type Template struct {
	// Text is the template. It is empty for the template of a repository until the learner has read it.
	Text string `json:"text,omitempty"`
	// Repository is the repository of the hub that has the template. It is empty if the spec gives the text.
	Repository string `json:"repository,omitempty"`
	// Unread names the ConfigMap of a text that has not been read yet. A run file with an unread text is only checked,
	// never stored.
	Unread *ref.ConfigMapKey `json:"unread,omitempty"`
	// Revision of the repository; empty for main.
	Revision string `json:"revision,omitempty"`
	// SHA256 is the digest that the text must have, 64 hex digits; empty for any.
	SHA256 string `json:"sha256,omitempty"`
	// Names are the special tokens that the template refers to by their purpose, such as eos_token. The learner reads
	// them with the template; they are nil until then.
	Names map[string]string `json:"names"`
}

// Digest returns the digest of everything that decides the output of a template, 64 hex digits.
func (t Template) Digest() (string, error) {
	return digest("template", Template{Text: t.Text, Names: t.Names})
}
