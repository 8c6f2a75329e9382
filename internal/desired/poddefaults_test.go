// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	_ "embed"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

// everyPodDefault sets each default that the manager has for pods.
//
//go:embed testdata/every-pod-default.json
var everyPodDefault string

func TestPodDefaultsReachAllPods(t *testing.T) {
	defaults, err := DecodePodDefaults(everyPodDefault)
	if err != nil {
		t.Fatal(err)
	}
	settings := Settings{Image: "image", PodDefaults: defaults}
	run, env := &v1alpha1.TrainingRun{}, &v1alpha1.RewardEnvironment{}
	env.Spec = v1alpha1.RewardEnvironmentSpec{}
	run.Name, run.UID, env.Name = "run", "0123456789", "env"
	run.Spec.Rollouts.Workers = new(int32(1))
	admit.Default(run)
	for name, template := range map[string]corev1.PodTemplateSpec{
		"learner": learnerTemplate(run, 1, "link", settings),
		"rollout": rolloutTemplate(run, 1, "link", settings),
		"probe":   probeTemplate(env, "probe", map[string]string{"app": "x"}, settings),
	} {
		spec, container := template.Spec, template.Spec.Containers[0]
		proxy := ""
		for _, e := range container.Env {
			if e.Name == "HTTPS_PROXY" {
				proxy = e.Value
			}
		}
		toleration := spec.Tolerations[len(spec.Tolerations)-1].Key
		got := []string{
			template.Labels["team"], template.Annotations["a"], spec.ImagePullSecrets[0].Name, spec.ServiceAccountName,
			spec.PriorityClassName,
			string(container.ImagePullPolicy), container.EnvFrom[0].SecretRef.Name,
			spec.TopologySpreadConstraints[0].TopologyKey,
			spec.SchedulerName, *spec.RuntimeClassName, string(spec.DNSPolicy), spec.DNSConfig.Nameservers[0],
			strconv.FormatInt(*spec.TerminationGracePeriodSeconds, 10),
			container.Resources.Limits.Cpu().String(), container.Resources.Limits.Memory().String(), spec.NodeSelector["pool"],
			toleration, proxy, spec.Volumes[len(spec.Volumes)-1].ConfigMap.Name,
			container.VolumeMounts[len(container.VolumeMounts)-1].MountPath,
		}
		want := []string{"all", "1", "registry", "runs", "low", "Always", "proxy", "zone", "batch", "gvisor", "None",
			"192.0.2.1", "90", "2", "2Gi", "runs", "runs", "http://proxy",
			"ca-bundle", "/etc/ssl/certs"}
		if diff := cmp.Diff(want, got); diff != "" || *spec.SecurityContext.RunAsUser != 1000 ||
			*spec.SecurityContext.FSGroup != 1000 {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAssignedUsers(t *testing.T) {
	run := &v1alpha1.TrainingRun{}
	run.Name, run.UID = "run", "0123456789"
	run.Spec.Rollouts.Workers = new(int32(1))
	admit.Default(run)
	for _, assigned := range []bool{false, true} {
		settings := Settings{Image: "image", AssignedUsers: assigned}
		known, ok := PodSettings(map[string]string{v1alpha1.AnnotationPods: settings.forPods()})
		if !ok || known.AssignedUsers != assigned {
			t.Errorf("the settings of an attempt are %+v, want assigned users %v", known, assigned)
		}
		for name, spec := range map[string]corev1.PodSpec{
			"learner": learnerTemplate(run, 1, "link", settings).Spec,
			"rollout": rolloutTemplate(run, 1, "link", settings).Spec,
			"reader":  ReaderPod(run, "reader", "", nil, settings).Spec,
		} {
			given := spec.SecurityContext
			if got := given.RunAsUser == nil && given.RunAsGroup == nil && given.FSGroup == nil; got != assigned ||
				!*given.RunAsNonRoot {
				t.Errorf("%s: the security context is %+v, want users that the cluster assigns: %v", name, given, assigned)
			}
		}
	}
	run.Spec.PodOverrides = []v1alpha1.TargetedPodOverrides{{Target: v1alpha1.TargetAll}}
	run.Spec.PodOverrides[0].SecurityContext.RunAsUser = new(int64(1000))
	given := learnerTemplate(run, 1, "link", Settings{AssignedUsers: true}).Spec.SecurityContext
	if given.RunAsUser == nil || *given.RunAsUser != 1000 {
		t.Errorf("the user is %v, want the user of the run's podOverrides", given.RunAsUser)
	}
}
