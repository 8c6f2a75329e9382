// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/config/crd"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// lengthFile returns the run file of an attempt, which keeps the given settings of an earlier attempt, if any.
func lengthFile(t *testing.T, kept *contract.Fixed, change func(*algorithm.Algorithm)) contract.RunFile {
	t.Helper()
	run := testRun(func(run *v1alpha1.TrainingRun) { change(run.Spec.Algorithm) })
	file, err := File(FileInput{Run: run, Attempt: 1, Pins: testPins(), Fixed: kept,
		DefaultBaseURL: "http://tinkersim"})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestLengthDecidesTheWeightsWhereTheLearningRateFalls(t *testing.T) {
	for schedule, want := range map[algorithm.Schedule]bool{
		algorithm.ScheduleConstant: true, algorithm.ScheduleLinear: false, algorithm.ScheduleCosine: false,
	} {
		of := func(steps int64) contract.RunFile {
			return lengthFile(t, nil, func(a *algorithm.Algorithm) { a.Steps, a.Optimizer.Schedule = steps, schedule })
		}
		six, twelve := of(6), of(12)
		if got := six.SpecDigest == twelve.SpecDigest; got != want {
			t.Errorf("%s: runs of 6 and of 12 steps have the same digest: %v, want %v", schedule, got, want)
		}
		if got := []int64{six.Algorithm().Steps, twelve.Algorithm().Steps}; !cmp.Equal(got, []int64{6, 12}) {
			t.Errorf("%s: the files have %v steps, want 6 and 12", schedule, got)
		}
	}
}

// TestAnAttemptHasTheLengthOfTheSpec checks that an attempt keeps the settings of an earlier attempt, but not the
// length, which an earlier build may have stored among them.
func TestAnAttemptHasTheLengthOfTheSpec(t *testing.T) {
	kept := lengthFile(t, nil, func(a *algorithm.Algorithm) { a.Steps = 6 }).Fixed
	earlier := kept
	earlier.Algorithm = kept.Algorithm.DeepCopy()
	earlier.Algorithm.Steps = 6
	for name, fixed := range map[string]contract.Fixed{"this build's": kept, "an earlier build's": earlier} {
		digest, err := contract.SpecDigest(fixed)
		if err != nil {
			t.Fatal(err)
		}
		file := lengthFile(t, &fixed, func(a *algorithm.Algorithm) { a.Steps = 12 })
		if file.SpecDigest != digest || file.Algorithm().Steps != 12 {
			t.Errorf("%s: the file has digest %s and %d steps, want %s and 12", name, file.SpecDigest,
				file.Algorithm().Steps, digest)
		}
	}
	epochs := lengthFile(t, &kept, func(a *algorithm.Algorithm) { a.Steps, a.Epochs = 0, 3 })
	once := lengthFile(t, nil, func(a *algorithm.Algorithm) { a.Steps, a.Epochs = 0, 3 })
	if got, want := epochs.Algorithm().Steps, once.Algorithm().Steps; got != want {
		t.Errorf("3 epochs of the tasks that are pinned are %d steps, want %d", got, want)
	}
}

// TestChangedLength compares a spec with the annotation that a learner's Job has.
func TestChangedLength(t *testing.T) {
	run := testRun()
	annotations := map[string]string{v1alpha1.AnnotationSettings: learnerSettings(run)}
	var noted map[string]string
	if err := json.Unmarshal([]byte(annotations[v1alpha1.AnnotationSettings]), &noted); err != nil {
		t.Fatal(err)
	}
	delete(noted, FieldSteps)
	delete(noted, FieldEpochs)
	noted["algorithm"] = templateDigest(run.Spec.Algorithm)
	earlier := map[string]string{v1alpha1.AnnotationSettings: string(encode(noted))}

	more := testRun(func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.Steps++ })
	for name, tc := range map[string]struct {
		run         *v1alpha1.TrainingRun
		annotations map[string]string
		want        []string
	}{
		"as it was":                     {run, annotations, nil},
		"as it was, by an earlier one":  {run, earlier, nil},
		"more steps":                    {more, annotations, []string{FieldSteps}},
		"more steps, by an earlier one": {more, earlier, []string{"algorithm"}},
	} {
		got, known := compare(tc.run, settingsOf(tc.run), tc.annotations)
		if diff := cmp.Diff(tc.want, got); diff != "" || !known {
			t.Errorf("%s: known %v, changed (-want +got):\n%s", name, known, diff)
		}
	}
}

func TestRaised(t *testing.T) {
	const is = 6
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TrainingRun)
		want   bool
	}{
		"the same steps": {func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.Steps = is }, false},
		"more steps":     {func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.Steps = is + 1 }, true},
		"the same epochs": {func(run *v1alpha1.TrainingRun) {
			run.Spec.Algorithm.Steps, run.Spec.Algorithm.Epochs, run.Status.Epochs = 0, 2, new(int64(2))
		}, false},
		"more epochs": {func(run *v1alpha1.TrainingRun) {
			run.Spec.Algorithm.Steps, run.Spec.Algorithm.Epochs, run.Status.Epochs = 0, 3, new(int64(2))
		}, true},
		"a rate that falls": {func(run *v1alpha1.TrainingRun) {
			run.Spec.Algorithm.Steps, run.Spec.Algorithm.Optimizer.Schedule = is+1, algorithm.ScheduleLinear
		}, false},
		"an evaluation": {func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm = nil }, false},
	} {
		run := testRun(tc.change)
		run.Status.Steps = new(int64(is))
		if got := Raised(run); got != tc.want {
			t.Errorf("%s: raised is %v, want %v", name, got, tc.want)
		}
	}
}

// TestEveryFieldOfTheAlgorithmButItsLengthIsFixed looks for each field in the rule that fixes the algorithm, because
// the rule names the fields one by one.
func TestEveryFieldOfTheAlgorithmButItsLengthIsFixed(t *testing.T) {
	rules := strings.Join(strings.Fields(string(crd.TrainingRuns)), " ")
	for field := range reflect.TypeFor[algorithm.Algorithm]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "steps" || name == "epochs" {
			continue
		}
		rule := "self.spec.algorithm." + name + " == oldSelf.spec.algorithm." + name
		if !strings.Contains(rules, rule) {
			t.Errorf("no rule of the CRD has %q", rule)
		}
	}
}

// TestDataContinues checks that the first slot of a run is read from the name of its initial checkpoint.
func TestDataContinues(t *testing.T) {
	const saved = "tinker://m/weights/r1f3a9c2b-s000040-c00000321-a002m1-0123456789-abcdef0123"
	for name, tc := range map[string]struct {
		data       v1alpha1.DataInit
		checkpoint string
		want       int64
		refused    bool
	}{
		"the first task":            {v1alpha1.DataRestart, saved, 0, false},
		"the next task":             {v1alpha1.DataContinue, saved, 321, false},
		"a name that does not tell": {v1alpha1.DataContinue, "tinker://m/weights/mine", 0, true},
	} {
		run := testRun(func(run *v1alpha1.TrainingRun) {
			run.Spec.InitFrom = &v1alpha1.InitFrom{Checkpoint: tc.checkpoint, Data: tc.data,
				Optimizer: v1alpha1.OptimizerReset}
		})
		file, err := File(FileInput{Run: run, Attempt: 1, Pins: testPins(), DefaultBaseURL: "http://tinkersim",
			InitFrom: tc.checkpoint})
		if (err != nil) != tc.refused {
			t.Fatalf("%s: the error is %v", name, err)
		}
		if !tc.refused && file.Fixed.InitFrom.Cursor != tc.want {
			t.Errorf("%s: the run begins at slot %d, want %d", name, file.Fixed.InitFrom.Cursor, tc.want)
		}
	}
}
