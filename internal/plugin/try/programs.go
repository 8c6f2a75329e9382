// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/rollout/setup"
)

// passedOn are the variables by which python3 and its packages are found. Functions get no other variables of this
// process, which may have keys.
var passedOn = []string{
	"PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "PYENV_ROOT", "PYENV_VERSION",
	"CONDA_PREFIX",
}

// starterBytes is the memory of this program, which starts the commands of agents here. In a pod the runner starts
// them.
const starterBytes = 256 << 20

func (t *trial) socket() string { return filepath.Join(t.dir, contract.RunnerSocket) }

func (t *trial) scratch() string { return filepath.Join(t.dir, "programs") }

// hostPrograms starts a runner if environments have functions, agents or programs of the policy. stop ends the
// runner.
func (t *trial) hostPrograms(ctx context.Context) (stop func(), err error) {
	for _, name := range t.names() {
		definition := desired.Definition(t.input.environments[name].Spec)
		if definition.ProgramID() != "" || definition.AgentID() != "" || definition.SandboxID() != "" {
			stop, err := t.startRunner(ctx)
			if err != nil {
				return nil, err
			}
			t.progress("functions and programs run with what this machine has, and not in the image of a cluster")
			t.tellRequirements()
			return func() {
				for _, host := range t.hosts {
					host.Close()
				}
				stop()
			}, nil
		}
	}
	return func() {}, nil
}

// tellRequirements says which packages are not installed here.
func (t *trial) tellRequirements() {
	var missing []string
	for _, name := range t.names() {
		if execution := t.input.environments[name].Spec.Execution; execution != nil {
			for _, requirement := range execution.Requirements {
				missing = append(missing, "'"+string(requirement)+"'")
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		t.progress("execution.requirements are not installed here; if python3 lacks them: python3 -m pip install %s",
			strings.Join(slices.Compact(missing), " "))
	}
}

// programs returns the host that runs the functions of a definition.
func (t *trial) programs(definition contract.Definition) *pythonreward.Host {
	host := &pythonreward.Host{Socket: t.socket(), Env: map[string]string{}, StarterBytes: starterBytes}
	for _, name := range passedOn {
		if value := t.env.Getenv(name); value != "" {
			host.Env[name] = fromHere(name, value)
		}
	}
	// A process has a home directory of its own; packages that were installed for the user are in the user's home
	// directory.
	if home := t.env.Getenv("HOME"); home != "" {
		host.Env["PYTHONUSERBASE"] = filepath.Join(home, ".local")
	}
	maps.Copy(host.Env, t.variables(definition.Execution))
	t.hosts = append(t.hosts, host)
	return host
}

// fromHere returns the value of a variable for processes that run in other directories: relative folders of a list
// become absolute.
func fromHere(name, value string) string {
	if name != "PATH" && name != "PYTHONPATH" {
		return value
	}
	folders := filepath.SplitList(value)
	for i, folder := range folders {
		if absolute, err := filepath.Abs(folder); err == nil && folder != "" {
			folders[i] = absolute
		}
	}
	return strings.Join(folders, string(filepath.ListSeparator))
}

// withInterpreter adds to a list of folders the folder of the python3 that is found in them: the python3 of a virtual
// environment is a link, and a sandbox reads only folders of its PATH and of the system.
func withInterpreter(path string) string {
	folders := filepath.SplitList(path)
	for _, folder := range folders {
		target, err := filepath.EvalSymlinks(filepath.Join(folder, "python3"))
		if err != nil {
			continue
		}
		if own := filepath.Dir(target); !slices.Contains(folders, own) {
			folders = append(folders, own)
		}
		break
	}
	return strings.Join(folders, string(filepath.ListSeparator))
}

// sandboxes returns the host of the policy's programs. It has only the PATH of this process.
func (t *trial) sandboxes(contract.Definition) *pythonreward.Host {
	host := &pythonreward.Host{Socket: t.socket(), Env: map[string]string{}}
	if path := t.env.Getenv("PATH"); path != "" {
		host.Env["PATH"] = withInterpreter(fromHere("PATH", path))
	}
	t.hosts = append(t.hosts, host)
	return host
}

// variables returns the variables of execution.env. Secrets come from the file and from --secret.
func (t *trial) variables(execution *contract.Execution) map[string]string {
	values := map[string]string{}
	if execution == nil || len(execution.Env) == 0 {
		return values
	}
	var list []corev1.EnvVar
	if err := json.Unmarshal(execution.Env, &list); err != nil {
		t.progress("execution.env cannot be read: %v", err)
	}
	read := setup.ReadSecret(t.root())
	for _, variable := range list {
		values[variable.Name] = variable.Value
		from := variable.ValueFrom
		if from == nil {
			continue
		}
		value, err := "", fmt.Errorf("only values and Secrets are known here")
		if key := from.SecretKeyRef; key != nil {
			value, err = read(ref.SecretKey{Name: key.Name, Key: key.Key})
		}
		if err != nil {
			t.progress("execution.env: %s is empty: %v", variable.Name, err)
		}
		values[variable.Name] = value
	}
	return values
}
