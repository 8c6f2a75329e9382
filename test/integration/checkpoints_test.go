// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/status"
	tinkerapi "github.com/tinker-operator/tinker-operator/internal/tinker"
	tinkerclient "github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// savedState starts tinkersim and returns its URL and the path of a state that it has saved.
func savedState() (url, state string) {
	GinkgoHelper()
	ctx := context.Background()
	_, url = simulatortest.Serve(GinkgoT(), tinkersim.Options{})
	api, err := tinkerclient.New(tinkerclient.Config{BaseURL: url, APIKey: "tml-test", UserAgent: "test"})
	Expect(err).NotTo(HaveOccurred())
	session, err := api.CreateSession(ctx, tinkerclient.SessionRequest{Tags: []string{"test"}})
	Expect(err).NotTo(HaveOccurred())
	model, err := api.CreateModel(ctx, tinkerapi.CreateModelRequest{Session: session, BaseModel: tinkersim.ModelName,
		Lora: tinkerapi.DefaultLora()})
	Expect(err).NotTo(HaveOccurred())
	saving, err := model.SaveState(ctx, tinkerclient.SaveRequest{Name: "s000020"})
	Expect(err).NotTo(HaveOccurred())
	saved, err := saving.Wait(ctx)
	Expect(err).NotTo(HaveOccurred())
	return url, saved.Path
}

var _ = Describe("kubectl tinker checkpoints", func() {
	It("lists checkpoints and downloads an adapter with the key of the run's Secret", func() {
		w := newEnv()
		run, first := w.startedRun()
		url, state := savedState()
		saved := progress(20)
		saved.Checkpoints[0].State = state
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: saved})
		w.eventually(run, func(g Gomega) {
			g.Expect(status.Latest(&run.Status)).NotTo(BeNil())
			g.Expect(status.Latest(&run.Status).State).To(Equal(state))
		})
		Expect(succeeds(w.namespace, "checkpoints", "list", "arithmetic")).To(ContainSubstring(state))

		folder := filepath.Join(GinkgoT().TempDir(), "adapter")
		download := []string{"checkpoints", "download", "arithmetic", "--step", "20", "--base-url", url, "-o", folder}
		Expect(tinker(w.namespace, download...).stderr).To(ContainSubstring("set the variable TINKER_API_KEY"),
			"the Secret does not exist")
		reference := run.Spec.Tinker.APIKeySecretKeyRef
		Expect(kube.Create(context.Background(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: reference.Name},
			Data:       map[string][]byte{reference.Key: []byte("tml-test\n")},
		})).To(Succeed())
		Expect(succeeds(w.namespace, download...)).To(ContainSubstring("adapter_model.safetensors"))
		entries, err := os.ReadDir(folder)
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(HaveLen(2))
		Expect(tinker(w.namespace, "checkpoints", "download", "arithmetic",
			"--best").stderr).To(ContainSubstring("spec.checkpoints.keepBest"))
	})
})
