// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares an object, encoded as YAML, with a file in testdata.
func golden(t *testing.T, name string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); look at it, then go test -update:\n%s", name, diff)
	}
}

var settings = Settings{Image: "registry/tinker-operator:1", DefaultBaseURL: "https://hosted"}

// testRun returns the smallest run, with changes and then with its defaults.
func testRun(changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
	run := &v1alpha1.TrainingRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "arithmetic", UID: "0123456789-uid"},
		Spec: v1alpha1.TrainingRunSpec{
			Model:  v1alpha1.Model{Name: "tinkersim/byte-136k"},
			Tinker: v1alpha1.Tinker{APIKeySecretKeyRef: &ref.SecretKey{Name: "tinker", Key: "KEY"}},
			Environments: []v1alpha1.TrainingEnvironment{{
				EnvironmentUse: v1alpha1.EnvironmentUse{Name: "arithmetic", Sampling: playing.Sampling{MaxTokens: 16}},
				GroupSize:      8,
			}},
			Algorithm: &algorithm.Algorithm{TasksPerStep: 32, Steps: 60,
				Optimizer: algorithm.Optimizer{LearningRate: 3e-4}},
			Evaluation: &v1alpha1.Evaluation{},
			Rollouts:   v1alpha1.Rollouts{Workers: new(int32(2))},
		},
	}
	for _, change := range changes {
		change(run)
	}
	admit.Default(run)
	return run
}

func testEnvironment() *v1alpha1.RewardEnvironment {
	return &v1alpha1.RewardEnvironment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "arithmetic", UID: "abcdefgh-uid"},
		Spec: v1alpha1.RewardEnvironmentSpec{
			Dataset: &environment.Dataset{Arithmetic: &environment.ArithmeticData{MaxOperand: 99}},
			Reward:  &environment.Reward{RewardRule: environment.RewardRule{ExactMatch: &environment.ExactMatch{}}},
		},
	}
}

func testPins() Pins {
	return Pins{"arithmetic": {
		Digest:     strings.Repeat("d", 64),
		Definition: Definition(testEnvironment().Spec),
		Splits:     map[string]int64{"train": 900, "test": 100},
	}}
}

func TestObjects(t *testing.T) {
	run := testRun(func(run *v1alpha1.TrainingRun) { run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"} })
	env := testEnvironment()
	digest := strings.Repeat("1234", 16)
	for name, object := range map[string]any{
		"learner-job":  LearnerJob(run, 3, "link-secret", settings),
		"rollout-job":  RolloutJob(run, 3, "link-secret", settings),
		"probe-job":    ProbeJob(env, digest, 2, settings),
		"probe-config": ProbeConfig(env, []byte("{}"), digest, 2),
		"service":      Service(run, 3),
		"link-secret": CredentialsSecret(run, contract.Credentials{Token: "t", ManagerToken: "m", Certificate: []byte("c"),
			PrivateKey: []byte("k")}, CredentialsName(run, "suffix")),
	} {
		golden(t, name, object)
	}
}

func TestOverridesAreMerged(t *testing.T) {
	run := testRun(func(run *v1alpha1.TrainingRun) {
		*run.Spec.Override(v1alpha1.TargetLearner) = v1alpha1.PodOverrides{
			Labels:             map[string]v1alpha1.LabelValue{"team": "x", v1alpha1.LabelRun: "stolen"},
			Annotations:        map[string]string{"a": "b"},
			Image:              "other:2",
			ImagePullSecrets:   []corev1.LocalObjectReference{{Name: "pull"}},
			ServiceAccountName: "s3-writer",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")},
			},
			Env: []corev1.EnvVar{
				{Name: "HTTPS_PROXY", Value: "http://proxy:3128"},
				{Name: "TINKER_API_KEY", Value: "stolen"},
			},
			Volumes: []v1alpha1.Volume{{Name: "ca",
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}}}},
			VolumeMounts: []v1alpha1.VolumeMount{{Name: "ca", MountPath: "/etc/ca", ReadOnly: new(true)}},
			NodeSelector: map[string]string{"pool": "spot"},
			Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))}},
			Affinity:          &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
			PriorityClassName: "low",
			SecurityContext:   v1alpha1.PodSecurity{RunAsUser: new(int64(1000)), FSGroup: new(int64(2000))},
			ImagePullPolicy:   corev1.PullAlways,
			EnvFrom: []corev1.EnvFromSource{
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "proxy"}}}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
			}},
			TerminationGracePeriodSeconds: new(int64(300)),
			SchedulerName:                 "batch",
			RuntimeClassName:              "gvisor",
			DNSPolicy:                     corev1.DNSNone,
			DNSConfig:                     &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1"}},
			InitContainers: []v1alpha1.InitContainer{
				{
					Name: "fetch", Image: "fetch:1", Command: []string{"fetch"}, Args: []string{"--into=/ca"},
					Env:          []corev1.EnvVar{{Name: "A", Value: "b"}},
					Resources:    corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
					VolumeMounts: []v1alpha1.VolumeMount{{Name: "ca", MountPath: "/ca"}},
				},
				{Name: "proxy", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("one-gpu")}},
		}
	})
	golden(t, "learner-overridden", LearnerJob(run, 1, "link", settings).Spec.Template)
}

func TestNamesFit(t *testing.T) {
	run := testRun(func(run *v1alpha1.TrainingRun) { run.Name = strings.Repeat("a", 40) })
	env := testEnvironment()
	env.Name = strings.Repeat("b", 63)
	for name, limit := range map[string]int{
		LearnerJobName(run, 99999):       63,
		RolloutJobName(run) + "-999":     63, // the hostname of an index
		ServiceName(run):                 63,
		RunFileName(run, 99999):          253,
		CredentialsName(run, "12345678"): 253,
		ProbeName(env, "12345678", 999):  63,
	} {
		if len(name) > limit {
			t.Errorf("%s has %d characters, at most %d fit", name, len(name), limit)
		}
	}
	other := testRun(func(run *v1alpha1.TrainingRun) { run.UID = types.UID("98765432-uid") })
	if RolloutJobName(other) == RolloutJobName(testRun()) {
		t.Errorf("a later run of the same name has the same Job: got %v for both", RolloutJobName(other))
	}
}

func TestRolloutScale(t *testing.T) {
	cases := map[string]struct {
		workers *int32
		want    Scale
	}{
		"as many as asked for":                    {new(int32(5)), Scale{Workers: 5}},
		"none are a suspended Job":                {new(int32(0)), Scale{Workers: 1, Suspended: true}},
		"a spec without a number has the default": {nil, Scale{Workers: 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := testRun(func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = tc.workers })
			job := RolloutJob(run, 1, "link", settings)
			created := Scale{Workers: *job.Spec.Parallelism, Suspended: *job.Spec.Suspend}
			if got := RolloutScale(run); got != tc.want || created != tc.want {
				t.Errorf("RolloutScale = %v, the Job has %v, want %v", got, created, tc.want)
			}
			if _, changed := Rescale(run, job); changed || SuspendedByOther(job) {
				t.Error("a Job of the wanted scale is to be changed, or is taken for one that another controller suspended")
			}
		})
	}
}

func TestRescale(t *testing.T) {
	scaled := func(workers int32) *v1alpha1.TrainingRun {
		return testRun(func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = new(workers) })
	}
	job := func(workers int32, changes ...func(*batchv1.Job)) *batchv1.Job {
		made := RolloutJob(scaled(workers), 1, "link", settings)
		for _, change := range changes {
			change(made)
		}
		return made
	}
	queued := func(job *batchv1.Job) { job.Spec.Suspend = new(true) }
	cases := map[string]struct {
		workers int32
		job     *batchv1.Job
		want    Scale
	}{
		"more":                       {5, job(2), Scale{Workers: 5}},
		"none":                       {0, job(2), Scale{Workers: 1, Suspended: true}},
		"some again":                 {3, job(0), Scale{Workers: 3}},
		"a queue's suspension stays": {5, job(2, queued), Scale{Workers: 5, Suspended: true}},
		"also over none":             {0, job(2, queued), Scale{Workers: 1, Suspended: true}},
		"and some again":             {3, job(1, queued), Scale{Workers: 3, Suspended: true}},
		"a queue resumes a Job that is to be suspended": {0, job(0, func(j *batchv1.Job) { j.Spec.Suspend = new(false) }),
			Scale{Workers: 1, Suspended: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.job.DeepCopy()
			changed, _ := Rescale(scaled(tc.workers), tc.job)
			if got := (Scale{Workers: *changed.Spec.Parallelism, Suspended: *changed.Spec.Suspend}); got != tc.want ||
				*changed.Spec.Completions != got.Workers {
				t.Errorf("Rescale = %v with %d completions, want %v", got, *changed.Spec.Completions, tc.want)
			}
			if diff := cmp.Diff(before, tc.job); diff != "" {
				t.Errorf("Rescale changed its argument:\n%s", diff)
			}
			if _, again := Rescale(scaled(tc.workers), changed); again {
				t.Error("Rescale does not settle")
			}
		})
	}
}

func TestTemplateDigestLeavesTheOperatorsOwnOut(t *testing.T) {
	run := testRun()
	digest := RolloutTemplateDigest(run)
	changed := testRun(func(run *v1alpha1.TrainingRun) { run.Spec.Override(v1alpha1.TargetWorkers).Image = "x" })
	scaled := testRun(func(run *v1alpha1.TrainingRun) { run.Spec.Rollouts.Workers = new(int32(9)) })
	if RolloutTemplateDigest(changed) == digest {
		t.Errorf("a changed pod has the same digest: got %v for both", RolloutTemplateDigest(changed))
	}
	if RolloutTemplateDigest(scaled) != digest {
		t.Errorf("scaling changes the digest: got %v, want %v", RolloutTemplateDigest(scaled), digest)
	}
	upgraded := RolloutJob(run, 1, "link", Settings{Image: "registry/tinker-operator:2"})
	if upgraded.Annotations[v1alpha1.AnnotationTemplate] != digest {
		t.Errorf("an upgrade of the operator would replace the workers: got %v, want %v",
			upgraded.Annotations[v1alpha1.AnnotationTemplate], digest)
	}
}

func TestRunFileRoundTrip(t *testing.T) {
	run := testRun()
	file, err := File(FileInput{Run: run, Attempt: 2, Pins: testPins(), DefaultBaseURL: "https://hosted"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := RunFile(run, file, testPins(), settings)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := contract.DecodeRunFile([]byte(config.Data[contract.RunFileName]))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(file, decoded); diff != "" {
		t.Errorf("the run file changed on its way (-written +read):\n%s", diff)
	}
	pins, err := DecodePins(config, decoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(testPins(), pins); diff != "" {
		t.Errorf("the pins changed on their way (-written +read):\n%s", diff)
	}
}

// TestBuildersAreDeterministic checks that two builds of one object do not differ: the API server would see a change.
func TestBuildersAreDeterministic(t *testing.T) {
	run := testRun()
	for range 20 {
		a, _ := json.Marshal([]*batchv1.Job{LearnerJob(run, 1, "l", settings), RolloutJob(run, 1, "l", settings)})
		b, _ := json.Marshal([]*batchv1.Job{LearnerJob(run, 1, "l", settings), RolloutJob(run, 1, "l", settings)})
		if !bytes.Equal(a, b) {
			t.Fatalf("two builds differ (-want +got):\n%.300s", cmp.Diff(string(a), string(b)))
		}
	}
}

func TestDefinition(t *testing.T) {
	env := testEnvironment()
	env.Spec.Interaction = &environment.Interaction{ToolUse: &environment.ToolUse{}}
	admit.Default(env)
	spec := env.Spec
	plain := testEnvironment()
	admit.Default(plain)
	want := Definition(plain.Spec)
	want.Interaction = &environment.Interaction{ToolUse: &environment.ToolUse{
		ParseErrors: environment.ParseErrors{MaxConsecutive: new(int32(2)), Train: "Keep"}}}
	if diff := cmp.Diff(want, Definition(spec)); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	spec.Interaction.ToolUse = &environment.ToolUse{
		SystemPrompt: "$(tools)", Dialect: environment.HermesJSON,
		ParseErrors: environment.ParseErrors{MaxConsecutive: new(int32(0)), Train: environment.MaskParseErrors},
	}
	want.Interaction.ToolUse = &environment.ToolUse{SystemPrompt: "$(tools)", Dialect: environment.HermesJSON,
		ParseErrors: environment.ParseErrors{MaxConsecutive: new(int32(0)), Train: "Mask"}}
	if diff := cmp.Diff(want, Definition(spec)); diff != "" {
		t.Errorf("all given (-want +got):\n%s", diff)
	}
}

func TestDefinitionOfWorkflows(t *testing.T) {
	cases := map[string]struct {
		spec environment.Interaction
		want environment.Interaction
	}{
		"the defaults of solvers and a judge": {
			environment.Interaction{SolverJudge: &environment.SolverJudge{}},
			environment.Interaction{SolverJudge: &environment.SolverJudge{Solvers: 2}},
		},
		"solvers and a judge": {
			environment.Interaction{SolverJudge: &environment.SolverJudge{Solvers: 3, SolverPrompt: "s",
				JudgePrompt: "j", AnswerPattern: "a"}},
			environment.Interaction{SolverJudge: &environment.SolverJudge{Solvers: 3, SolverPrompt: "s", JudgePrompt: "j",
				AnswerPattern: "a"}},
		},
		"self-refinement": {
			environment.Interaction{SelfRefine: &environment.SelfRefine{DraftPrompt: "d", CritiquePrompt: "c",
				RevisionPrompt: "r"}},
			environment.Interaction{SelfRefine: &environment.SelfRefine{DraftPrompt: "d", CritiquePrompt: "c",
				RevisionPrompt: "r"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			env := testEnvironment()
			env.Spec.Interaction = &tc.spec
			admit.Default(env)
			if diff := cmp.Diff(&tc.want, Definition(env.Spec).Interaction); diff != "" {
				t.Errorf("Definition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvironmentLabelsReachProbes(t *testing.T) {
	env := testEnvironment()
	env.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "small", "team": "research", "job-name": "x",
		v1alpha1.LabelRole: "learner"}
	got := ProbeJob(env, strings.Repeat("ab", 32), 1, settings).Labels
	if got["kueue.x-k8s.io/queue-name"] != "small" || got["team"] != "research" {
		t.Errorf("the probe's Job has the labels %v, want the labels of its environment", got)
	}
	if got["job-name"] != "" || got[v1alpha1.LabelRole] != v1alpha1.RoleProbe {
		t.Errorf("the probe's Job has labels of the Job controller or of another role: %v", got)
	}
}

func TestRunLabelsReachJobsAndPods(t *testing.T) {
	run := testRun(func(run *v1alpha1.TrainingRun) {
		run.Labels = map[string]string{
			"kueue.x-k8s.io/queue-name": "gpu", "team": "research", "rl.tinker-operator.dev/role": "probe",
			"app.kubernetes.io/managed-by": "Helm", "argocd.argoproj.io/instance": "app", "job-name": "x",
		}
		run.Spec.Override(v1alpha1.TargetLearner).Labels = map[string]v1alpha1.LabelValue{"team": "own"}
	})
	learner, rollout := LearnerJob(run, 1, "link", settings), RolloutJob(run, 1, "link", settings)
	for what, labels := range map[string]map[string]string{
		"learner Job": learner.Labels, "rollout Job": rollout.Labels, "rollout pod": rollout.Spec.Template.Labels,
	} {
		if labels["team"] != "research" {
			t.Errorf("%s has the labels %v, want the run's", what, labels)
		}
		if labels["app.kubernetes.io/managed-by"] != "tinker-operator" || labels["argocd.argoproj.io/instance"] != "" ||
			labels["job-name"] != "" || labels["rl.tinker-operator.dev/role"] == "probe" ||
			labels["kueue.x-k8s.io/queue-name"] != "" {
			t.Errorf("%s has labels of tools: %v", what, labels)
		}
	}
	pod := learner.Spec.Template.Labels
	if pod["kueue.x-k8s.io/queue-name"] != "" || pod["argocd.argoproj.io/instance"] != "" || pod["job-name"] != "" {
		t.Errorf("the learner's pod has the labels %v, want the run's without the labels of tools", pod)
	}
	if got := learner.Spec.Template.Labels["team"]; got != "own" {
		t.Errorf("podOverrides[target=Learner].labels lose against the run's: team = %q", got)
	}
	if run.Labels["job-name"] != "x" {
		t.Errorf("the run's own labels were changed: got %v, want x", run.Labels["job-name"])
	}
}

func TestRunAnnotationsReachJobs(t *testing.T) {
	run := testRun(func(run *v1alpha1.TrainingRun) {
		run.Annotations = map[string]string{
			"team": "research", "example.com/cost-center": "7", "rl.tinker-operator.dev/image": "other",
			"kubectl.kubernetes.io/last-applied-configuration": "{}", "meta.helm.sh/release-name": "x",
			"argocd.argoproj.io/tracking-id": "x", "provreq.kueue.x-k8s.io/maxRunDurationSeconds": "60",
		}
	})
	bare := testRun(func(*v1alpha1.TrainingRun) {})
	for name, jobs := range map[string][2]*batchv1.Job{
		"learner": {LearnerJob(bare, 1, "link", settings), LearnerJob(run, 1, "link", settings)},
		"workers": {RolloutJob(bare, 1, "link", settings), RolloutJob(run, 1, "link", settings)},
	} {
		want := merged(jobs[0].Annotations, map[string]string{"team": "research", "example.com/cost-center": "7"})
		if diff := cmp.Diff(want, jobs[1].Annotations); diff != "" {
			t.Errorf("annotations of the Job of the %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestProbePodOverrides(t *testing.T) {
	env := testEnvironment()
	env.Spec.Pod = v1alpha1.PodOverrides{
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}, NodeSelector: map[string]string{"pool": "a"},
		Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
	}
	made := ProbeJob(env, strings.Repeat("ab", 32), 1, settings)
	spec := made.Spec.Template.Spec
	if len(spec.ImagePullSecrets) != 1 || spec.NodeSelector["pool"] != "a" || !slices.ContainsFunc(spec.Tolerations,
		func(t corev1.Toleration) bool { return t.Key == "k" }) {
		t.Errorf("the probe's pod ignores spec.pod: %+v", spec)
	}
	const digest = v1alpha1.AnnotationTemplate
	other := ProbeJob(testEnvironment(), strings.Repeat("ab", 32), 1, settings).Annotations[digest]
	if got := made.Annotations[digest]; got == other {
		t.Errorf("another pod has the same digest: got %v for both", got)
	}
}

// TestDefinitionsAreStoredOnce trains and evaluates on one environment with a function. The ConfigMap must have the
// code of the function only once.
func TestDefinitionsAreStoredOnce(t *testing.T) {
	pins := testPins()
	pin := pins["arithmetic"]
	pin.Definition = Definition(pythonEnvironment("own", nil, environment.Python{Source: inline(rewardCode)}).Spec)
	pins["arithmetic"] = pin
	run := testRun(func(run *v1alpha1.TrainingRun) {
		run.Spec.Evaluation = &v1alpha1.Evaluation{}
		run.Spec.Environments = append(run.Spec.Environments, *run.Spec.Environments[0].DeepCopy())
		again := &run.Spec.Environments[1]
		again.Name, again.EnvironmentRef = "again", &v1alpha1.EnvironmentRef{Name: "arithmetic"}
	})
	file, err := File(FileInput{Run: run, Attempt: 1, Pins: pins, DefaultBaseURL: "https://hosted"})
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Fixed.Environments) != 2 || len(file.Evaluation.Environments) != 2 {
		t.Fatalf("got %d and %d environments, want 2 and 2", len(file.Fixed.Environments), len(file.Evaluation.Environments))
	}
	config, err := RunFile(run, file, pins, settings)
	if err != nil {
		t.Fatal(err)
	}
	all := config.Data[contract.RunFileName] + config.Data[PinsKey]
	if got := strings.Count(all, "def reward(row, reply)"); got != 1 {
		t.Errorf("the ConfigMap has the definition %d times, want once", got)
	}
	decoded, err := contract.DecodeRunFile([]byte(config.Data[contract.RunFileName]))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(file, decoded); diff != "" {
		t.Errorf("the run file changed on its way (-written +read):\n%s", diff)
	}
	// A pin that is not in the run file, or is there with another definition, keeps its definition.
	pins["other"] = Pin{Digest: "other", Definition: testPins()["arithmetic"].Definition}
	pins["same"] = Pin{Digest: pin.Digest, Definition: testPins()["arithmetic"].Definition}
	if config, err = RunFile(run, file, pins, settings); err != nil {
		t.Fatal(err)
	}
	got, err := DecodePins(config, decoded)
	if diff := cmp.Diff(pins, got); err != nil || diff != "" {
		t.Errorf("DecodePins: %v (-written +read):\n%s", err, diff)
	}
}
