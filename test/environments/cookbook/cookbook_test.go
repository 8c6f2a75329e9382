// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package cookbook

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	root    = "../../.."
	adapter = root + "/config/samples/environments/cookbook"
)

// next is a version of the cookbook besides the version that the adapter's requirements name. It requires a version of
// tml-renderers that is not published, so it is also installed without dependencies.
const next = "tinker_cookbook==0.6.1"

// checks are the builders of check.py, with the number of groups that are played of each.
var checks = map[string]int{"arithmetic": 6, "guess_number": 4, "twenty_questions": 2, "text_arena": 8, "drawn": 6}

// interpreter returns the Python with the packages of the adapter's requirements, and the folder of the cookbook's next
// version.
func interpreter(t *testing.T) (python, nextVersion string) {
	t.Helper()
	requirements, err := filepath.Abs(filepath.Join(adapter, "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	make := exec.CommandContext(t.Context(), root+"/test/conformance/venv", requirements)
	make.Stderr = os.Stderr
	venv, err := make.Output()
	if err != nil {
		t.Fatalf("making the environment of %s: %v", requirements, err)
	}
	path := strings.TrimSpace(string(venv))
	python, nextVersion = filepath.Join(path, "bin", "python"), filepath.Join(path, strings.ReplaceAll(next, "==", "-"))
	if _, err := os.Stat(nextVersion); err != nil {
		partial := nextVersion + ".partial"
		install := exec.CommandContext(t.Context(), python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--no-deps", "--upgrade", "--target", partial, next)
		if text, err := install.CombinedOutput(); err != nil {
			t.Fatalf("installing %s: %v\n%s", next, err, text)
		}
		if err := os.Rename(partial, nextVersion); err != nil {
			t.Fatal(err)
		}
	}
	return python, nextVersion
}

// packages returns the environment in which python3 finds the adapter and a version of the cookbook.
func packages(t *testing.T, python string, folders ...string) []string {
	t.Helper()
	own, err := filepath.Abs(adapter)
	if err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "PATH="+filepath.Dir(python)+":"+os.Getenv("PATH"),
		"PYTHONPATH="+strings.Join(append(folders, own), ":"), "PYTHONDONTWRITEBYTECODE=1", "HF_HUB_OFFLINE=1")
}

// TestRewardsAreThoseOfTheCookbook plays the same groups with the adapter and with the cookbook's loop.
func TestRewardsAreThoseOfTheCookbook(t *testing.T) {
	python, nextVersion := interpreter(t)
	for version, folders := range map[string][]string{"0.5.8": nil, "0.6.1": {nextVersion}} {
		t.Run(version, func(t *testing.T) {
			check := exec.CommandContext(t.Context(), python, "check.py")
			var log bytes.Buffer
			check.Env, check.Stderr = packages(t, python, folders...), &log
			output, err := check.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, log.String())
			}
			groups := map[string]int{}
			for line := range strings.Lines(string(output)) {
				var played struct{ Check, Version string }
				if err := json.Unmarshal([]byte(line), &played); err != nil {
					t.Fatalf("%v in %s", err, line)
				}
				if played.Version != version {
					t.Fatalf("tinker-cookbook %s has been played, want %s", played.Version, version)
				}
				groups[played.Check]++
				t.Log(strings.TrimSpace(line))
			}
			if diff := cmp.Diff(checks, groups); diff != "" {
				t.Errorf("groups that were played (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSampleIsTried trains the sample with the local python3, and checks that the reward rises.
func TestSampleIsTried(t *testing.T) {
	python, nextVersion := interpreter(t)
	plugin := filepath.Join(t.TempDir(), "kubectl-tinker")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", plugin, root+"/cmd/kubectl-tinker").
		CombinedOutput(); err != nil {
		t.Fatalf("building kubectl-tinker: %v\n%s", err, text)
	}
	for version, folders := range map[string][]string{"0.5.8": nil, "0.6.1": {nextVersion}} {
		t.Run(version, func(t *testing.T) {
			try := exec.CommandContext(t.Context(), plugin, "try", "-f", root+"/config/samples/cookbook.yaml", "--steps", "12",
				"-o", "json")
			var log bytes.Buffer
			try.Env, try.Stderr = packages(t, python, folders...), &log
			output, err := try.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, log.String())
			}
			first, last := rewards(t, output)
			t.Logf("the mean reward of a group was %.3f in the first steps, and %.3f in the last", first, last)
			if last <= first+1 {
				t.Errorf("the mean reward was %.3f, and %.3f after 12 steps, want a rise", first, last)
			}
		})
	}
}

// rewards returns the mean rewards of groups in the first three steps and in the last three.
func rewards(t *testing.T, output []byte) (first, last float64) {
	t.Helper()
	var steps []struct {
		Groups []struct {
			Episodes []struct{ Reward float64 }
		}
	}
	if err := json.Unmarshal(output, &steps); err != nil {
		t.Fatal(err)
	}
	if len(steps) < 6 {
		t.Fatalf("got %d steps, want 12", len(steps))
	}
	for i, at := range []int{0, 1, 2, len(steps) - 3, len(steps) - 2, len(steps) - 1} {
		sum, episodes := 0.0, 0
		for _, group := range steps[at].Groups {
			for _, episode := range group.Episodes {
				sum, episodes = sum+episode.Reward, episodes+1
			}
		}
		mean := sum / float64(max(episodes, 1)) / 3
		if i < 3 {
			first += mean
		} else {
			last += mean
		}
	}
	return first, last
}
