// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// jqPrograms returns the programs for jq of docs/operating.md: the program that restores, and the program that lists.
func jqPrograms() []string {
	GinkgoHelper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	Expect(err).NotTo(HaveOccurred())
	var programs []string
	for _, found := range regexp.MustCompile(`(?s) jq (?:-r )?'(.*?)' backup\.json`).FindAllSubmatch(page, -1) {
		programs = append(programs, string(found[1]))
	}
	Expect(programs).To(HaveLen(2))
	return programs
}

// jq runs a program with gojq, because the machine may lack jq.
func jq(arguments ...string) []byte {
	GinkgoHelper()
	return command("go", append([]string{"tool", "-modfile=hack/tools/go.mod", "gojq"}, arguments...)...)
}

var _ = Describe("The backup of docs/operating.md", func() {
	It("restores endpoints, environments and unfinished runs, which continue their former selves", func() {
		ctx, w := context.Background(), emptyEnv()
		file := filepath.Join(GinkgoT().TempDir(), "backup.json")
		endpoint, environment := w.endpointOf(), w.environment()
		unfinished := w.create(w.named)
		complete := w.create(func(run *v1alpha1.TrainingRun) {
			run.Name = "complete"
			run.Spec.ResumeFrom = &v1alpha1.ResumeFrom{UID: "1f3a9c2b-0000-4000-8000-000000000001"}
		})
		unstarted := w.create(func(run *v1alpha1.TrainingRun) { run.Name = "unstarted" })
		for run, finished := range map[*v1alpha1.TrainingRun]metav1.ConditionStatus{
			unfinished: metav1.ConditionFalse, complete: metav1.ConditionTrue,
		} {
			run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: finished,
				Reason: "Tested", LastTransitionTime: metav1.Now()}}
			Expect(kube.Status().Update(ctx, run)).To(Succeed())
		}
		backup, err := kubectl(w.namespace, "get", "tinkerendpoints,rewardenvironments,trainingruns", "-o", "json")
		Expect(err).NotTo(HaveOccurred(), backup)
		Expect(os.WriteFile(file, []byte(backup), 0o600)).To(Succeed())
		uids := map[string]string{}
		for _, object := range []client.Object{endpoint, environment, unfinished, complete, unstarted} {
			uids[object.GetName()] = string(object.GetUID())
			Expect(kube.Delete(ctx, object)).To(Succeed())
		}

		programs := jqPrograms()
		restored := filepath.Join(GinkgoT().TempDir(), "restored.json")
		Expect(os.WriteFile(restored, jq(programs[0], file), 0o600)).To(Succeed())
		output, err := kubectl(w.namespace, "apply", "-f", restored)
		Expect(err).NotTo(HaveOccurred(), output)

		var runs v1alpha1.TrainingRunList
		Expect(kube.List(ctx, &runs, client.InNamespace(w.namespace))).To(Succeed())
		resumed := map[string]string{}
		for _, run := range runs.Items {
			resumed[run.Name] = run.Spec.ResumeFrom.UID
			Expect(string(run.UID)).NotTo(Equal(uids[run.Name]), run.Name)
		}
		Expect(resumed).To(Equal(map[string]string{
			unfinished.Name: uids[unfinished.Name], unstarted.Name: uids[unstarted.Name],
		}))
		Expect(kube.Get(ctx, client.ObjectKeyFromObject(endpoint), endpoint)).To(Succeed())
		Expect(kube.Get(ctx, client.ObjectKeyFromObject(environment), environment)).To(Succeed())
		Expect(string(jq("-r", programs[1], file))).To(ContainSubstring(
			w.namespace + "\t" + unfinished.Name + "\t" + uids[unfinished.Name] + "\n"))
	})
})
