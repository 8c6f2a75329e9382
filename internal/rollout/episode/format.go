// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

// FormatError reports a prompt that the format of the model cannot express. It is not a fault of the server: the
// model does not suit the environment, or a task has messages that the format does not have.
type FormatError struct {
	Err error
	// sampled says that the episode has replies already, which another try would sample again.
	sampled bool
}

// Error implements error.
func (e *FormatError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// Tools reports whether the format cannot declare tools.
func (e *FormatError) Tools() bool { return errors.Is(e.Err, renderer.ErrTools) }

// Format decides about episodes whose first prompt the model's format cannot express.
type Format interface {
	// Expressed notes that the format has expressed the first prompt of an episode.
	Expressed()
	// Awaits reports whether such an episode begins again later, since the cause may be repaired. Otherwise it is left
	// out, as after a permanent fault.
	Awaits(err *FormatError) bool
}

// expressed notes that prompts were rendered. requests counts the earlier requests of the episode.
func (p *Player) expressed(requests int) {
	if requests > 0 {
		return
	}
	p.Progress.format.Store(nil)
	if p.Format != nil {
		p.Format.Expressed()
	}
}

func (p *Player) awaits(err *FormatError) bool {
	return p.Format != nil && !err.sampled && p.Format.Awaits(err)
}

// FormatProblem returns the problem of a member that waits because the model's format cannot express its prompt; it
// is empty if no member waits.
func (p *Progress) FormatProblem() string {
	if problem := p.format.Load(); problem != nil {
		return *problem
	}
	return ""
}

// waitForFormat notes that a member waits.
func (p *Progress) waitForFormat(spec Spec, err *FormatError) {
	problem := fmt.Sprintf("environment %q, task %d of split %q: %s: correct the prompt, or choose a model.renderer "+
		"that can express it",
		spec.Settings.Name, spec.Task, spec.Split, err)
	if err.Tools() {
		problem = fmt.Sprintf("environment %q: %s: it requires interaction.toolUse.dialect, HermesJSON or QwenXML, or a "+
			"model.renderer "+
			"that has tools", spec.Settings.Name, err)
	}
	p.format.Store(&problem)
}
