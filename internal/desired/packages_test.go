// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// wheelOne and wheelTwo are pinned wheels.
var (
	wheelOne = "one==1.0 " + strings.Repeat("A", 43) + "="
	wheelTwo = "two==2.0 " + strings.Repeat("B", 43) + "="
)

// packagedEnvironment returns an environment with a function, with programs of the policy, and with packages for both.
func packagedEnvironment() *v1alpha1.RewardEnvironment {
	env := pythonEnvironment("own", &v1alpha1.Execution{FunctionImage: environment.FunctionImage{
		Requirements: []environment.Requirement{"one==1.0"},
		Index: &environment.PackageIndex{SecretRef: &ref.Secret{Name: "index"},
			CABundleConfigMapKeyRef: &ref.ConfigMapKey{Name: "authorities", Key: "pem"}},
	}}, environment.Python{Source: inline(rewardCode)}, environment.Python{Source: inline(rewardCode + " ")})
	env.Spec.Reward.Weighted[1].Python = nil
	env.Spec.Reward.Weighted[1].Tests = &environment.Tests{Language: environment.TestPython}
	return env
}

func envOf(c corev1.Container) map[string]string {
	values := map[string]string{}
	for _, e := range c.Env {
		values[e.Name] = e.Value
		if e.ValueFrom != nil {
			values[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
		}
	}
	return values
}

func initNames(spec corev1.PodSpec) []string {
	var names []string
	for _, c := range spec.InitContainers {
		names = append(names, c.Name)
	}
	return names
}

// TestProbeLooksForPackages checks that the pod of a probe looks for packages once, before it starts any container
// that uses the packages.
func TestProbeLooksForPackages(t *testing.T) {
	settings := Settings{Image: "operator:dev", PythonImage: "python:dev", PackageIndex: "https://index.example/simple"}
	spec := ProbeJob(packagedEnvironment(), strings.Repeat("ab", 32), 1, settings).Spec.Template.Spec
	want := []string{"install-runner", PackagesContainer, "environment-own", "environment--sandbox-own"}
	if diff := cmp.Diff(want, initNames(spec)); diff != "" {
		t.Fatalf("containers (-want +got):\n%s", diff)
	}
	installer := spec.InitContainers[1]
	if installer.Image != "python:dev" || installer.RestartPolicy != nil {
		t.Errorf("the image %s installs packages with the policy %v, want the functions' image, once",
			installer.Image, installer.RestartPolicy)
	}
	values := map[string]string{"REQUIREMENTS": "one==1.0", "LOCK": "", "PACKAGES_DIR": packagesDir,
		"TERMINATION_LOG": terminationLog, "HOME": "/tmp", "INDEX_URL": "https://index.example/simple",
		"INDEX_USERNAME": "index/username", "INDEX_PASSWORD": "index/password",
		"INDEX_CA": "/etc/tinker-operator/index/ca.crt"}
	if diff := cmp.Diff(values, envOf(installer)); diff != "" {
		t.Errorf("variables of the container that installs (-want +got):\n%s", diff)
	}
	for _, c := range spec.InitContainers[2:] {
		if mountsOf(c)[packagesDir] != mountsOf(installer)[packagesDir] {
			t.Errorf("%s has %v at %s, want the installed packages", c.Name, mountsOf(c)[packagesDir], packagesDir)
		}
	}
}

// TestWorkersInstallPinnedPackages checks that workers install the packages that the probe has pinned. Functions and
// the policy's programs have the packages in volumes of their own, which they cannot write.
func TestWorkersInstallPinnedPackages(t *testing.T) {
	settings := Settings{Image: "operator:dev", PythonImage: "python:dev"}
	env := packagedEnvironment()
	env.Status.Packages = []string{wheelOne, wheelTwo}
	definition := PinnedDefinition(env)
	unpinned := definition
	unpinned.Execution = new(*definition.Execution)
	unpinned.Execution.Packages = nil
	if unpinned.ProgramID() == definition.ProgramID() {
		t.Errorf("environments with other packages share a container: got %v for both", unpinned.ProgramID())
	}
	job := RolloutJob(testRun(), 1, "credentials", settings)
	if err := RunServers(job, Pins{"own": {Definition: definition}}.Servers(), "", settings); err != nil {
		t.Fatal(err)
	}
	spec := job.Spec.Template.Spec
	want := []string{"install-runner", "install-packages-0", "environment-own", "install-packages-0-sandbox",
		"environment--sandbox-own"}
	if diff := cmp.Diff(want, initNames(spec)); diff != "" {
		t.Fatalf("containers (-want +got):\n%s", diff)
	}
	volumes := map[string]bool{}
	for i := 1; i < len(spec.InitContainers); i += 2 {
		installer, user := spec.InitContainers[i], spec.InitContainers[i+1]
		if got := envOf(installer)["LOCK"]; got != wheelOne+"\n"+wheelTwo {
			t.Errorf("%s installs %q, want the packages that the probe has pinned", installer.Name, got)
		}
		volume := mountsOf(user)[packagesDir]
		if volume == "" || volume != mountsOf(installer)[packagesDir] || volumes[volume] {
			t.Errorf("%s has the volume %q, want one of its own with the packages of %s", user.Name, volume, installer.Name)
		}
		volumes[volume] = true
		for _, mount := range user.VolumeMounts {
			if mount.MountPath == packagesDir && !mount.ReadOnly {
				t.Errorf("%s can write its packages", user.Name)
			}
		}
		if at := slices.Index(user.Command, "--python-path"); at < 0 || user.Command[at+1] != packagesDir {
			t.Errorf("%s runs %v, want that it finds the packages", user.Name, user.Command)
		}
	}
	if got := mountsOf(spec.Containers[0])[packagesDir]; got != "" {
		t.Errorf("the worker has packages of a user: got %q, want none", got)
	}
}

// TestWithoutRequirements requires that the packages in the status do not change a definition without requirements.
func TestWithoutRequirements(t *testing.T) {
	env := pythonEnvironment("own", nil, environment.Python{Source: inline(rewardCode)})
	before := PinnedDefinition(env)
	env.Status.Packages = []string{wheelOne}
	if diff := cmp.Diff(before, PinnedDefinition(env)); diff != "" {
		t.Errorf("the definition (-want +got):\n%s", diff)
	}
	spec := ProbeJob(env, strings.Repeat("ab", 32), 1, Settings{}).Spec.Template.Spec
	if diff := cmp.Diff([]string{"install-runner", "environment-own"}, initNames(spec)); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
}

// TestPackagesOfProbe reads the list of pinned packages from an image, which may be anyone's.
func TestPackagesOfProbe(t *testing.T) {
	requires := contract.Definition{Execution: &contract.Execution{FunctionImage: environment.FunctionImage{
		Requirements: []environment.Requirement{"one==1.0"}}}}
	many := strings.Repeat(wheelOne+"\n", MaxPackages+1)
	for name, tc := range map[string]struct {
		definition contract.Definition
		message    string
		want       []string
		wrong      string
	}{
		"pinned":               {requires, wheelTwo + "\n" + wheelOne, []string{wheelOne, wheelTwo}, ""},
		"no requirements":      {contract.Definition{Execution: &contract.Execution{}}, "anything", nil, ""},
		"no execution":         {contract.Definition{}, "", nil, ""},
		"nothing":              {requires, "", nil, `it says ""`},
		"an option of pip":     {requires, wheelOne + "\n--index-url=https://evil.example", nil, "pinned no packages"},
		"an address":           {requires, "one @ https://evil.example/one.whl", nil, "pinned no packages"},
		"too many":             {requires, many, nil, "at most 64"},
		"two hashes in a line": {requires, wheelOne + " " + wheelOne, nil, "pinned no packages"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := PackagesOfProbe(tc.definition, tc.message)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("got the error %v, want one with %q", err, tc.wrong)
			}
		})
	}
}
