// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// readProbe returns the result of a probe that reads these rows.
func readProbe(rows string) contract.ProbeResult {
	result := goodProbe()
	sum := sha256.Sum256([]byte(rows))
	result.Contents = &contract.DataContents{Sources: []contract.DataSource{{Name: "rows.jsonl",
		SHA256: hex.EncodeToString(sum[:]), Rows: 1000}}}
	return result
}

// mountsOf lists the folders that a Job's container mounts from ConfigMaps, by the ConfigMaps' names.
func mountsOf(job *batchv1.Job) map[string]string {
	volumes, mounts := map[string]string{}, map[string]string{}
	for _, v := range job.Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil {
			volumes[v.Name] = v.ConfigMap.Name
		}
	}
	for _, m := range job.Spec.Template.Spec.Containers[0].VolumeMounts {
		if name := volumes[m.Name]; name != "" {
			mounts[name] = m.MountPath
		}
	}
	return mounts
}

var _ = Describe("Data in a ConfigMap", func() {
	const mounted = contract.DataDir + "/configmap/own-data"

	It("is mounted in probe and workers, pinned by digest, and probed again when it changes", func() {
		w := newEnv()
		ctx := context.Background()
		rows := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "own-data"},
			Data: map[string]string{"rows.jsonl": "one"}}
		Expect(kube.Create(ctx, rows)).To(Succeed())
		w.kubelet.set(func(k *kubelet) { k.probe = readProbe("one") })
		env := &v1alpha1.RewardEnvironment{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "arithmetic"},
			Spec: v1alpha1.RewardEnvironmentSpec{
				Dataset: &environment.Dataset{
					JSONL: &environment.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "own-data"}},
					Splits: []environment.DataSplit{{Name: "test", Source: "rows.jsonl", Take: new(int64(100))},
						{Name: "train", Source: "rows.jsonl", Skip: 100}},
				},
				Reward: &environment.Reward{RewardRule: environment.RewardRule{ExactMatch: &environment.ExactMatch{}}},
			},
		}
		Expect(kube.Create(ctx, env)).To(Succeed())
		awaitProbed(env, "True Probed")
		first := env.Status.Digest
		Expect(env.Status.Dataset.Sources).To(HaveLen(1))
		Expect(env.Status.Dataset.Sources[0].SHA256).To(Equal(readProbe("one").Contents.Sources[0].SHA256))
		Expect(mountsOf(&w.jobs(v1alpha1.RoleProbe)[0])).To(HaveKeyWithValue("own-data", mounted))

		By("changing the ConfigMap")
		rows.Data["rows.jsonl"] = "two"
		Expect(kube.Update(ctx, rows)).To(Succeed())
		w.kubelet.set(func(k *kubelet) { k.probe = readProbe("two") })
		// The manager may write the status meanwhile, so only the label is sent.
		patch := client.MergeFrom(env.DeepCopy())
		env.Labels = map[string]string{"look": "again"}
		Expect(kube.Patch(ctx, env, patch)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(kube.Get(ctx, client.ObjectKeyFromObject(env), env)).To(Succeed())
			g.Expect(env.Status.Dataset.Sources[0].SHA256).To(Equal(readProbe("two").Contents.Sources[0].SHA256))
			g.Expect(env.Status.Digest).NotTo(Equal(first))
		}).Should(Succeed())
		awaitProbed(env, "True Probed")

		By("training on it")
		run := w.create()
		w.learner(run.Name, 1)
		config := &corev1.ConfigMap{}
		Expect(kube.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: desired.RunFileName(run, 1)},
			config)).To(Succeed())
		file, err := contract.DecodeRunFile([]byte(config.Data[contract.RunFileName]))
		Expect(err).NotTo(HaveOccurred())
		Expect(file.Fixed.Environments[0].Definition.Dataset.Contents).To(Equal(readProbe("two").Contents))
		Eventually(func(g Gomega) {
			jobs := w.jobs(v1alpha1.RoleRollout)
			g.Expect(jobs).To(HaveLen(1))
			g.Expect(mountsOf(&jobs[0])).To(HaveKeyWithValue("own-data", mounted))
		}).Should(Succeed())
	})

	It("that does not fit the spec makes the environment wait with the field and the row", func() {
		w := newEnv()
		w.kubelet.set(func(k *kubelet) {
			k.probe = contract.ProbeResult{Reason: "DataInvalid",
				Message: `dataset.fields.answer: row 3 of rows.jsonl has no column "label"`}
		})
		env := w.environment()
		awaitProbed(env, "False DataInvalid")
		Expect(env.Status.Conditions[0].Message).To(ContainSubstring("row 3 of rows.jsonl"))
	})
})
