// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package python has the program with which the runner runs users' Python functions. The program is one file that
// needs nothing but Python 3.9, so that it runs in any image with Python.
package python

import (
	_ "embed" // the program
	"encoding/json"
	"fmt"
	"maps"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// Source is the program.
//
//go:embed tinker_runner.py
var Source string

// The names of the program and of inline code in the home directory of a process.
const (
	programFile = "tinker_runner.py"
	codeFile    = "user_code.py"
)

// Function is a user's function.
type Function struct {
	// Code is its source text. If Code is empty, the function is in Module, a module of the image.
	Code, Module string
	// Name is its name. Defaults to Entry, or without Entry to reward, rewards, episode or agent, whichever there is. An
	// episode may also be the class Environment.
	Name string
	// Entry is the method that calls the function: reward, rewards, episode or agent. Defaults to the function's name if
	// that is one of these, and else to reward; a class is an episode.
	Entry string
}

// config is the configuration in the hello of the program.
type config struct {
	File     string `json:"file,omitempty"`
	Module   string `json:"module,omitempty"`
	Function string `json:"function,omitempty"`
	Entry    string `json:"entry,omitempty"`
}

// Spec returns the spec that runs a function with an interpreter. The other fields of base are kept.
func Spec(interpreter string, f Function, base protocol.Spec) (protocol.Spec, error) {
	settings := config{Module: f.Module, Function: f.Name, Entry: f.Entry}
	files := maps.Clone(base.Files)
	if files == nil {
		files = map[string]string{}
	}
	files[programFile] = Source
	if f.Code != "" {
		files[codeFile] = f.Code
		settings.File, settings.Module = codeFile, ""
	}
	encoded, err := json.Marshal(settings)
	if err != nil {
		return base, fmt.Errorf("encoding the program's settings: %w", err)
	}
	env := map[string]string{
		// One value for all processes: sets and dicts then have the same order in each of them.
		"PYTHONHASHSEED":          "0",
		"PYTHONDONTWRITEBYTECODE": "1",
		"PYTHONUTF8":              "1",
	}
	if !base.InheritEnv { // an image has its own
		env["PATH"] = "/usr/local/bin:/usr/bin:/bin"
	}
	maps.Copy(env, base.Env)
	base.Kind, base.Command, base.Files, base.Config, base.Env = "python", []string{interpreter, programFile}, files,
		encoded, env
	return base, nil
}
