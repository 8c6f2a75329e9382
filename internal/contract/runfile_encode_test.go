// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
)

// testFile returns a valid file with changes, and with the digest of the changed settings.
func testFile(t *testing.T, changes ...func(*RunFile)) RunFile {
	t.Helper()
	environment := Environment{
		Name: "arithmetic", Digest: strings.Repeat("d", 64),
		Definition: Definition{Dataset: arithmeticData(99),
			Reward: exactMatch()},
		Splits:    []Split{{Name: "train", Shuffle: true, Tasks: 900}},
		GroupSize: 8, MinMembers: 4, Retries: 3,
		Sampling: playing.Sampling{MaxTokens: 16, Temperature: new(1.0), TopP: 1},
		Reward:   playing.EpisodeReward{Reduction: playing.ReductionSum},
	}
	evaluated := environment
	evaluated.GroupSize, evaluated.MinMembers, evaluated.PassAt = 1, 1, []int{1}
	f := RunFile{
		Version: FormatVersion, Run: RunReference{Namespace: "n", Name: "r", UID: "u"}, Attempt: 1,
		Fixed: Fixed{
			Model: Model{Name: "m", LoraRank: 8, TrainMLP: true, Renderer: "qwen3",
				Tokenizer: &Tokenizer{Repository: "o/m", Revision: "r", File: "tokenizer.json", SHA256: strings.Repeat("e", 64)}},
			BaseURL:      "http://tinkersim",
			Environments: []Environment{environment},
			Algorithm: &algorithm.Algorithm{
				TasksPerStep: 32, Steps: 60, Substeps: 1, Grouping: algorithm.GroupingTrajectory,
				ConstantGroups: algorithm.KeepConstantGroups, OnDroppedGroup: algorithm.RefillDroppedGroups,
				Advantage: algorithm.Advantage{Baseline: "GroupMean", Scale: "None"},
				Loss:      algorithm.Loss{Name: algorithm.LossImportanceSampling},
				Optimizer: algorithm.Optimizer{LearningRate: 3e-4, Schedule: "Constant", Beta1: new(0.9),
					Beta2: new(0.95), Epsilon: 1e-8},
			},
		},
		Checkpoints: Checkpoints{EverySteps: 20, RollingEverySteps: 1, KeepBestCount: 1, KeepBestMetric: "test/pass@1"},
		Evaluation:  &Evaluation{EverySteps: 20, Environments: []Environment{evaluated}},
		Concurrency: 256, LearnerAddress: "r.n.svc:7443",
		Capabilities: &Capabilities{BaseURL: "http://tinkersim", Model: "m", Supported: []string{"seed"}},
	}
	for _, change := range changes {
		change(&f)
	}
	digest, err := SpecDigest(f.Fixed)
	if err == nil {
		f.SpecDigest = digest
	}
	return f
}

func TestRoundTrip(t *testing.T) {
	f := testFile(t)
	data, err := EncodeRunFile(f)
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	got, err := DecodeRunFile(data)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	if diff := cmp.Diff(f, got); diff != "" {
		t.Errorf("the file changed on its way (-written +read):\n%s", diff)
	}
}

var update = flag.Bool("update", false, "digest and encode the golden files anew")

// digested writes a golden file with the digest of its settings.
func digested(t *testing.T, name string, golden []byte) []byte {
	t.Helper()
	var stored storedFile
	if err := json.Unmarshal(golden, &stored); err != nil {
		t.Fatal(err)
	}
	f, err := stored.file()
	if err != nil {
		t.Fatal(err)
	}
	if f.SpecDigest, err = SpecDigest(f.Fixed); err != nil {
		t.Fatal(err)
	}
	data, err := EncodeRunFile(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRunFilesOfEveryVersion reads recorded run files, and checks that they are written again to the byte: their
// digests are part of the lineage of runs that began with them.
func TestRunFilesOfEveryVersion(t *testing.T) {
	files, err := filepath.Glob("testdata/run-file*.v*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("golden run files: %v, %v", files, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			golden, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				golden = digested(t, name, golden)
			}
			file, err := DecodeRunFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf(".v%d.json", file.Version); !strings.HasSuffix(name, want) {
				t.Errorf("the version read is %d", file.Version)
			}
			encoded, err := EncodeRunFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(golden), string(encoded)); diff != "" {
				t.Errorf("the file changed on its way (-golden +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeRunFileChecksTheVersion(t *testing.T) {
	data, err := EncodeRunFile(testFile(t))
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf(`"version": %d`, FormatVersion)
	later := fmt.Sprintf(`"surprise": {"a": 1}, "version": %d`, FormatVersion+1)
	_, err = DecodeRunFile([]byte(strings.Replace(string(data), own, later, 1)))
	if !IsVersionError(err) || !strings.Contains(err.Error(),
		fmt.Sprintf("the run file has version %d, and this build reads version", FormatVersion+1)) {
		t.Errorf("a later version: %v", err)
	}
	_, err = DecodeRunFile([]byte(strings.Replace(string(data), own+",", "", 1)))
	if !IsVersionError(err) || !strings.Contains(err.Error(), "the run file has version 0, and this build reads version") {
		t.Errorf("DecodeRunFile of a file without a version: %v, want a *VersionError", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	data, err := EncodeRunFile(testFile(t))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"a setting that this build does not know": strings.Replace(string(data), `"version"`, `"surprise": 1, "version"`, 1),
		"another version": strings.Replace(string(data), fmt.Sprintf(`"version": %d`, FormatVersion),
			`"version": 99`, 1),
		"a spec that is not the digest's": strings.Replace(string(data), `"steps": 60`, `"steps": 61`, 1),
		"something behind the object":     string(data) + "{}",
		"another definition":              strings.Replace(string(data), `"maxOperand": 99`, `"maxOperand": 98`, 1),
		"a definition of another digest":  strings.Replace(string(data), `"`+strings.Repeat("d", 64)+`": {`, `"other": {`, 1),
		"half an object":                  string(data[:len(data)/2]),
		"no attempt":                      strings.Replace(string(data), `"attempt": 1`, `"attempt": 0`, 1),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeRunFile([]byte(text)); err == nil {
				t.Error("Decode took it")
			}
		})
	}
}

func TestValidateNamesTheField(t *testing.T) {
	cases := map[string]func(*RunFile){
		"run needs":                    func(f *RunFile) { f.Run.UID = "" },
		"attempt counts":               func(f *RunFile) { f.Attempt = 0 },
		"fixed.model.name":             func(f *RunFile) { f.Fixed.Model.Name = "" },
		"fixed.baseURL":                func(f *RunFile) { f.Fixed.BaseURL = "tinkersim" },
		"fixed.environments go with":   func(f *RunFile) { f.Fixed.Environments = nil },
		"fixed.environments[0].digest": func(f *RunFile) { f.Fixed.Environments[0].Digest = "" },
		"fixed.environments[0].splits": func(
			f *RunFile) {
			f.Fixed.Environments[0].Splits = []Split{{Name: "train"}}
		},
		"fixed.environments[0].definition needs": func(f *RunFile) { f.Fixed.Environments[0].Definition.Dataset = nil },
		"fixed.environments[1].name": func(f *RunFile) {
			f.Fixed.Environments = append(f.Fixed.Environments, f.Fixed.Environments[0])
		},
		"fixed.initFrom.checkpoint": func(f *RunFile) { f.Fixed.InitFrom = &InitFrom{} },
		"evaluation is needed": func(f *RunFile) {
			f.Evaluation, f.Fixed.Algorithm, f.Fixed.Environments = nil,
				nil, nil
		},
		"evaluation.environments must": func(f *RunFile) { f.Evaluation.Environments = nil },
		"learnerAddress":               func(f *RunFile) { f.LearnerAddress = "" },
	}
	checkFields(t, cases)
}

// checkFields changes the file, and checks that the errors name the fields.
func checkFields(t *testing.T, cases map[string]func(f *RunFile)) {
	t.Helper()
	for field, change := range cases {
		t.Run(field, func(t *testing.T) {
			err := testFile(t, change).Validate()
			if err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("Validate = %v, want it to name %q", err, field)
			}
			if _, err := EncodeRunFile(testFile(t, change)); err == nil {
				t.Error("Encode wrote it")
			}
		})
	}
}

// TestSpecDigest checks that the digest depends on the settings that decide the weights, and neither on the run nor on
// settings that may change.
func TestSpecDigest(t *testing.T) {
	digest := testFile(t).SpecDigest
	same := map[string]func(*RunFile){
		"another run":         func(f *RunFile) { f.Run.UID, f.Run.Name = "x", "y" },
		"another attempt":     func(f *RunFile) { f.Attempt = 7 },
		"other checkpoints":   func(f *RunFile) { f.Checkpoints.EverySteps = 1 },
		"other evaluation":    func(f *RunFile) { f.Evaluation.EverySteps = 1 },
		"another concurrency": func(f *RunFile) { f.Concurrency = 1 },
	}
	for name, change := range same {
		if got := testFile(t, change).SpecDigest; got != digest {
			t.Errorf("%s changes the digest", name)
		}
	}
	other := map[string]func(*RunFile){
		"another seed":     func(f *RunFile) { f.Fixed.Algorithm.Seed = 1 },
		"another endpoint": func(f *RunFile) { f.Fixed.BaseURL = "http://other" },
		"another grouping": func(f *RunFile) { f.Fixed.Algorithm.Grouping = algorithm.GroupingStep },
		"shared prompts":   func(f *RunFile) { f.Fixed.Environments[0].Sampling.SharedPrompt = new(true) },
		"roles":            func(f *RunFile) { f.Fixed.Algorithm.Roles = []algorithm.Role{{Name: "judge"}} },
		"kl": func(f *RunFile) {
			f.Fixed.Algorithm.KL = &algorithm.KL{Coefficient: 0.1, Reference: &algorithm.Reference{Model: "m"}}
		},
		"other tasks": func(f *RunFile) { f.Fixed.Environments[0].Splits[0].Tasks = 1 },
	}
	for name, change := range other {
		if got := testFile(t, change).SpecDigest; got == digest {
			t.Errorf("%s has the same digest", name)
		}
	}
	// The digest is written down, since a learner of another build must compute the same one.
	if want := "9ca5f686eb6ee4a449187578841d6aa9bfaaff3e489b0797fab438317ce9cba7"; digest != want {
		t.Errorf("SpecDigest = %s, want %s", digest, want)
	}
}

func TestProbeResult(t *testing.T) {
	want := ProbeResult{OK: true, Splits: []ProbeSplit{{Name: "test", Tasks: 1}}, CanaryReward: new(1.0)}
	data, err := EncodeProbeResult(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeProbeResult(string(data))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the result changed on its way (-written +read):\n%s", diff)
	}
	if data, err = EncodeProbeResult(ProbeResult{Message: strings.Repeat("x", 10000)}); err != nil ||
		len(data) > MaxProbeBytes {
		t.Errorf("a long message made %d bytes, %v", len(data), err)
	}
	if _, err := EncodeProbeResult(ProbeResult{CanaryReward: new(math.NaN())}); err == nil {
		t.Error("a canary of NaN was written")
	}
	if _, err := EncodeProbeResult(ProbeResult{Splits: make([]ProbeSplit, 500)}); err == nil {
		t.Error("more was written than fits")
	}
	for _, text := range []string{"", "panic: oh", `{"ok": true, "more": 1}`} {
		if _, err := DecodeProbeResult(text); err == nil {
			t.Errorf("%q was taken for a result", text)
		}
	}
}

func TestDefinition(t *testing.T) {
	want := Definition{Dataset: arithmeticData(9),
		Reward: exactMatch()}
	data, err := EncodeDefinition(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeDefinition(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the definition changed on its way (-written +read):\n%s", diff)
	}
	if _, err := EncodeDefinition(Definition{}); err == nil {
		t.Error("an empty definition was written")
	}
	for _, text := range []string{"", `{"surprise": {}}`} {
		if _, err := DecodeDefinition([]byte(text)); err == nil {
			t.Errorf("%q was taken for a definition", text)
		}
	}
}

// FuzzDecode decodes arbitrary bytes. A file that is accepted is valid, and does not change if it is encoded and
// decoded again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"fixed":{"model":{"name":"m"}}}`))
	f.Add([]byte(`{"version":1} {}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := DecodeRunFile(data)
		if err != nil {
			return
		}
		again, err := EncodeRunFile(file)
		if err != nil {
			t.Fatalf("the decoded file cannot be encoded: %v", err)
		}
		back, err := DecodeRunFile(again)
		if err != nil {
			t.Fatalf("the encoded file cannot be decoded: %v", err)
		}
		if diff := cmp.Diff(file, back, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the file changed on its way (-first +second):\n%s", diff)
		}
	})
}
