// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	rules "github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// endpointOf makes an endpoint with the name of the spec's namespace, which is also the operator's namespace.
func (w *env) endpointOf(changes ...func(*v1alpha1.TinkerEndpoint)) *v1alpha1.TinkerEndpoint {
	GinkgoHelper()
	made := &v1alpha1.TinkerEndpoint{}
	Expect(yaml.UnmarshalStrict([]byte(smallestEndpoint), made)).To(Succeed())
	made.Name = w.namespace
	for _, change := range changes {
		change(made)
	}
	Expect(kube.Create(context.Background(), made)).To(Succeed())
	DeferCleanup(func() { Expect(client.IgnoreNotFound(kube.Delete(context.Background(), made))).To(Succeed()) })
	return made
}

// named makes a run use the endpoint of the spec.
func (w *env) named(run *v1alpha1.TrainingRun) {
	run.Spec.Tinker = v1alpha1.Tinker{EndpointRef: &ref.Endpoint{Name: w.namespace}}
}

// managerOfEndpoints returns the configuration of a user who may do what the chart permits in the operator's namespace,
// and with the endpoint of the spec.
func (w *env) managerOfEndpoints() *rest.Config {
	GinkgoHelper()
	ctx, name := context.Background(), "manager-"+w.namespace
	rules := []rbacv1.PolicyRule{}
	for _, file := range []string{"manager-rules.yaml", "endpoint-rules.yaml"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "charts", "tinker-operator", "files", file))
		Expect(err).NotTo(HaveOccurred())
		role := rbacv1.Role{}
		Expect(yaml.Unmarshal(data, &role)).To(Succeed())
		rules = append(rules, role.Rules...)
	}
	user, err := controlPlane.AddUser(envtest.User{Name: name}, nil)
	Expect(err).NotTo(HaveOccurred())
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	local := metav1.ObjectMeta{Namespace: w.namespace, Name: "manager"}
	Expect(kube.Create(ctx, &rbacv1.Role{ObjectMeta: local, Rules: rules})).To(Succeed())
	Expect(kube.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: local, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"}})).To(Succeed())
	group, names := []string{v1alpha1.SchemeGroupVersion.Group}, []string{w.namespace}
	global := metav1.ObjectMeta{Name: name}
	role := &rbacv1.ClusterRole{ObjectMeta: global, Rules: []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{"tinkerendpoints"}, ResourceNames: names, Verbs: []string{"get"}},
		{APIGroups: group, Resources: []string{"tinkerendpoints/status"}, ResourceNames: names, Verbs: []string{"patch"}},
		{APIGroups: group, Resources: []string{"tinkerendpoints/finalizers"}, ResourceNames: names,
			Verbs: []string{"update"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: global, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}
	for _, object := range []client.Object{role, binding} {
		Expect(kube.Create(ctx, object)).To(Succeed())
		DeferCleanup(func() { Expect(kube.Delete(ctx, object)).To(Succeed()) })
	}
	as := user.Config()
	as.QPS = -1
	return as
}

// ofBroker reads an object of the broker of the spec.
func ofBroker[T client.Object](w *env, name string, into T) T {
	GinkgoHelper()
	Eventually(func() error {
		return kube.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, into)
	}).Should(Succeed())
	return into
}

// settings reads the settings of the spec's broker.
func (w *env) settings() endpoint.Settings {
	GinkgoHelper()
	var settings endpoint.Settings
	config := ofBroker(w, endpoint.SettingsName(w.namespace), &corev1.ConfigMap{})
	Expect(json.Unmarshal([]byte(config.Data[endpoint.SettingsKey]), &settings)).To(Succeed())
	return settings
}

// report writes a report of the spec's broker.
func (w *env) report(said endpoint.Report) {
	GinkgoHelper()
	said.Time = time.Now()
	encoded, err := json.Marshal(said)
	Expect(err).NotTo(HaveOccurred())
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: endpoint.ReportName(w.namespace)},
		Data:       map[string]string{endpoint.ReportKey: string(encoded)},
	}
	if err := kube.Create(context.Background(), config); apierrors.IsAlreadyExists(err) {
		Expect(kube.Update(context.Background(), config)).To(Succeed())
	} else {
		Expect(err).NotTo(HaveOccurred())
	}
}

// serve reports the replicas of the spec's broker as serving.
func (w *env) serve(replicas int32) {
	GinkgoHelper()
	deployment := ofBroker(w, endpoint.ObjectName(w.namespace), &appsv1.Deployment{})
	deployment.Status.Replicas, deployment.Status.ReadyReplicas = 2, replicas
	Expect(kube.Status().Update(context.Background(), deployment)).To(Succeed())
}

// awaitEndpoint reads the endpoint until the expectations hold. Time passes faster meanwhile.
func (w *env) awaitEndpoint(of *v1alpha1.TinkerEndpoint, expect func(Gomega)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		w.advance(time.Second)
		g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(of), of)).To(Succeed())
		expect(g)
	}).Should(Succeed())
}

func endpointCondition(of *v1alpha1.TinkerEndpoint, kind string) string {
	return describe(of.Status.Conditions, kind)
}

var _ = Describe("The manager of an endpoint", func() {
	It("makes a broker with the rights of the chart, and shows what it reports", func() {
		w := emptyEnv()
		w.startManager(&managerOptions{as: w.managerOfEndpoints(), endpoints: []string{w.namespace}})
		of := w.endpointOf(func(e *v1alpha1.TinkerEndpoint) {
			e.Spec.ProxyURL, e.Spec.Limits = "http://proxy:3128", &v1alpha1.EndpointLimits{UnfinishedSamples: new(int32(50))}
			e.Spec.ClientCertificateSecretRef = &ref.Secret{Name: "mtls"}
			e.Spec.Budgets = []v1alpha1.EndpointBudget{{Name: "all", USD: new(10.0), Period: v1alpha1.BudgetPeriodMonth}}
		})
		name := endpoint.ObjectName(of.Name)
		pod := ofBroker(w, name, &appsv1.Deployment{}).Spec.Template.Spec
		container := pod.Containers[0]
		Expect(container.Command).To(Equal([]string{"/broker"}))
		Expect(container.Args).To(ContainElements("--endpoint="+of.Name, "--namespace="+w.namespace, "--dir=/records",
			"--listen=:8443", "--tls-dir=/tls", "--key-dir=/key", "--client-cert-dir=/client-cert"))
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Projected != nil && v.Name == "key" })
		Expect(pod.Volumes[i].Projected.Sources[0].Secret.Name).To(Equal("tinker"))
		keys := ofBroker(w, pod.Volumes[i].Projected.Sources[1].Secret.Name, &corev1.Secret{})
		want, err := contract.DeriveEndpointKey(slices.Repeat([]byte{7}, 32), of.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(keys.Data["token-key"]).To(Equal(want))
		Expect(keys.Data).To(HaveKey(corev1.TLSCertKey))
		role := ofBroker(w, name, &rbacv1.Role{})
		for _, rule := range role.Rules {
			Expect(rule.Resources).NotTo(ContainElement("secrets"))
			Expect(rule.ResourceNames == nil).To(Equal(slices.Equal(rule.Verbs, []string{"create"})), "only create has no names")
		}
		Expect(ofBroker(w, name, &corev1.Service{}).Spec.Ports[0].Port).To(Equal(int32(8443)))
		Expect(ofBroker(w, name, &rbacv1.RoleBinding{}).Subjects[0].Name).To(Equal(name))
		claim := ofBroker(w, name+"-records", &corev1.PersistentVolumeClaim{})
		Expect(claim.OwnerReferences).To(BeEmpty(), "records outlive the endpoint")
		settings := w.settings()
		Expect(settings.BaseURL).To(Equal("https://tinker.example.com"))
		Expect(settings.ProxyURL).To(Equal("http://proxy:3128"))
		Expect(settings.Limits.UnfinishedSamples).To(Equal(50))
		Expect(settings.Budgets).To(Equal([]endpoint.Budget{{Name: "all", USD: 10, Period: endpoint.PeriodMonth}}))
		Expect(settings.Prices).NotTo(BeEmpty())

		w.serve(1)
		w.report(endpoint.Report{Budgets: []endpoint.BudgetUsage{{Name: "all", Since: time.Now().UTC(), USD: 4}}})
		w.awaitEndpoint(of, func(g Gomega) {
			g.Expect(endpointCondition(of, v1alpha1.ConditionReady)).To(Equal("True Serving"))
			g.Expect(endpointCondition(of, v1alpha1.ConditionStalled)).To(Equal("False AsExpected"))
			g.Expect(of.Status.Usage).To(HaveLen(1))
			g.Expect(*of.Status.Usage[0].USD).To(Equal(4.0))
		})
		w.report(endpoint.Report{KeyRefused: "401 Unauthorized"})
		w.awaitEndpoint(of, func(g Gomega) {
			g.Expect(endpointCondition(of, v1alpha1.ConditionReady)).To(Equal("False KeyRefused"))
			g.Expect(endpointCondition(of, v1alpha1.ConditionStalled)).To(Equal("True KeyRefused"))
		})
		w.report(endpoint.Report{})
		w.serve(0)
		w.awaitEndpoint(of, func(g Gomega) {
			g.Expect(endpointCondition(of, v1alpha1.ConditionReady)).To(Equal("False BrokerUnavailable"))
		})
		Expect(kube.Delete(context.Background(), of)).To(Succeed())
		Eventually(func() bool {
			key := client.ObjectKey{Namespace: w.namespace, Name: name}
			return apierrors.IsNotFound(kube.Get(context.Background(), key, &appsv1.Deployment{})) &&
				apierrors.IsNotFound(kube.Get(context.Background(), key, &corev1.Service{})) &&
				apierrors.IsNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(keys), &corev1.Secret{}))
		}).Should(BeTrue(), "what belongs to an endpoint goes with it")
	})

	It("gives a run its token, the broker's address and authority, and no API key", func() {
		w := emptyEnv()
		w.startManager(&managerOptions{endpoints: []string{w.namespace}})
		of := w.endpointOf()
		run, _ := w.startedRun(w.named)
		file := w.runFile(run, 1)
		Expect(file.Fixed.BaseURL).To(Equal(fmt.Sprintf("https://tinker-endpoint-%s.%s.svc:8443", of.Name, w.namespace)))
		config := ofBroker(w, desired.RunFileName(run, 1), &corev1.ConfigMap{})
		deployment := ofBroker(w, endpoint.ObjectName(of.Name), &appsv1.Deployment{})
		keys := ofBroker(w, deployment.Spec.Template.Spec.Volumes[0].Secret.SecretName, &corev1.Secret{})
		Expect(config.Data[desired.AuthorityKey]).To(Equal(string(keys.Data[corev1.TLSCertKey])))
		for _, role := range []string{v1alpha1.RoleLearner, v1alpha1.RoleRollout} {
			Eventually(func() int { return len(w.jobs(role)) }).Should(Equal(1))
			container := w.jobs(role)[0].Spec.Template.Spec.Containers[0]
			i := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "TINKER_API_KEY" })
			from := container.Env[i].ValueFrom.SecretKeyRef
			secret := ofBroker(w, from.Name, &corev1.Secret{})
			Expect(metav1.IsControlledBy(secret, run)).To(BeTrue())
			Expect(string(secret.Data[from.Key])).To(Equal(contract.RunToken(keys.Data["token-key"], string(run.UID))), role)
			Expect(from.Name).NotTo(Equal("tinker"))
			Expect(config.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationEndpointSecret, from.Name))
		}
		settings, ok := desired.PodSettings(config.Annotations)
		Expect(ok).To(BeTrue())
		pod := desired.RelayPod(run, run.Name+"-relay", config.Annotations[v1alpha1.AnnotationEndpointSecret], 1,
			"127.0.0.1:8092", settings)
		Expect(kube.Create(context.Background(), pod, client.DryRunAll)).To(Succeed(), "the pod of a person's requests")
		Expect(w.settings().Runs).To(ConsistOf(endpoint.Run{UID: string(run.UID), Namespace: w.namespace, Name: run.Name,
			Model: "tinkersim/byte-136k", Weight: 1}))
	})

	It("has a run wait that the endpoint does not allow, and one whose endpoint is missing", func() {
		w := emptyEnv()
		w.startManager(&managerOptions{endpoints: []string{w.namespace}})
		w.environment()
		run := w.create(w.named)
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False " + shows(problem.EndpointNotFound)))
			g.Expect(condition(run, v1alpha1.ConditionStalled)).To(Equal("True EndpointNotUsable"))
		})
		of := w.endpointOf(func(e *v1alpha1.TinkerEndpoint) {
			e.Spec.Allowed.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tinker": "yes"}}
			e.Spec.Allowed.Models = []string{"other"}
		})
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False " + shows(problem.EndpointForbidden)))
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring("tinker=yes"))
		})
		Expect(w.settings().Runs).To(BeEmpty())
		namespace := &corev1.Namespace{}
		Expect(kube.Get(context.Background(), client.ObjectKey{Name: w.namespace}, namespace)).To(Succeed())
		namespace.Labels["tinker"] = "yes"
		Expect(kube.Update(context.Background(), namespace)).To(Succeed())
		w.eventually(run, func(g Gomega) {
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring("allows the models other"))
		})
		Expect(w.attemptsWithJobs()).To(BeEmpty())
		Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(of), of)).To(Succeed())
		of.Spec.Allowed.Models = nil
		Expect(kube.Update(context.Background(), of)).To(Succeed())
		first := w.attempt(run, 1, progress(3))

		Expect(kube.Delete(context.Background(), of)).To(Succeed())
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(3),
			Problems: []problem.Problem{{Code: problem.EndpointUnreachable, Evidence: "connection refused"}}})
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False " + shows(problem.EndpointNotFound)))
			g.Expect(coded(run, v1alpha1.ConditionProgressing)).To(Equal("False " + shows(problem.EndpointNotFound)))
		})
		Expect(message(run, v1alpha1.ConditionAccepted)).NotTo(ContainSubstring("learner continues"))
		w.endpointOf()
		w.learners.answer(first.ip, contract.HeartbeatReply{Attempt: 1, Progress: progress(4)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionAccepted)).To(Equal("True Accepted"))
			g.Expect(condition(run, v1alpha1.ConditionProgressing)).To(Equal("True Progressing"))
		})
	})

	It("drains a run whose budget is reached, and continues it when the budget is raised", func() {
		w := emptyEnv()
		w.startManager(&managerOptions{endpoints: []string{w.namespace}})
		of := w.endpointOf(func(e *v1alpha1.TinkerEndpoint) {
			e.Spec.Budgets = []v1alpha1.EndpointBudget{{Name: "team", Tokens: new(int64(100)),
				Period: v1alpha1.BudgetPeriodForever}}
		})
		run, first := w.startedRun(w.named)
		w.report(endpoint.Report{Budgets: []endpoint.BudgetUsage{{Name: "team", Tokens: 120}}})
		Eventually(func() contract.Desired {
			w.advance(time.Second)
			requests := w.learners.received(first.ip)
			return requests[len(requests)-1].Desired
		}).Should(Equal(contract.DesiredDrain))
		w.verdict(w.learner(run.Name, 1), contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: progress(7)})
		w.eventually(run, func(g Gomega) {
			g.Expect(condition(run, v1alpha1.ConditionSuspended)).To(Equal("True BudgetReached"))
			g.Expect(message(run, v1alpha1.ConditionSuspended)).To(ContainSubstring(`Budget "team" of TinkerEndpoint`))
		})
		Expect(w.attemptsWithJobs()).To(BeEmpty())
		Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(of), of)).To(Succeed())
		of.Spec.Budgets[0].Tokens = new(int64(1000))
		Expect(kube.Update(context.Background(), of)).To(Succeed())
		w.attempt(run, 2, progress(7))
	})

	It("has runs wait that a budget by label might not count, and refuses a budget by a label of their authors", func() {
		w := emptyEnv()
		w.startManager(&managerOptions{endpoints: []string{w.namespace},
			fixed: rules.FixedLabels{OfNamespace: []string{"team"}}})
		budget := func(e *v1alpha1.TinkerEndpoint, key string) {
			e.Spec.Budgets = []v1alpha1.EndpointBudget{{Name: "trial", Tokens: new(int64(100)),
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"free"}}}},
				Period: v1alpha1.BudgetPeriodForever}}
		}
		of := w.endpointOf(func(e *v1alpha1.TinkerEndpoint) { budget(e, "project") })
		w.environment()
		run := w.create(w.named, func(run *v1alpha1.TrainingRun) { run.Labels = map[string]string{"project": "free"} })
		w.awaitEndpoint(of, func(g Gomega) {
			g.Expect(endpointCondition(of, v1alpha1.ConditionReady)).To(Equal("False SpecInvalid"))
			g.Expect(endpointCondition(of, v1alpha1.ConditionStalled)).To(Equal("True SpecInvalid"))
		})
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False " + shows(problem.EndpointForbidden)))
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring(`by the label "project", which no ` +
				"admission policy fixes"))
		})
		Expect(w.settings().Runs).To(BeEmpty())
		Expect(w.attemptsWithJobs()).To(BeEmpty())

		By("selecting by a label that is the namespace's")
		Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(of), of)).To(Succeed())
		budget(of, "team")
		Expect(kube.Update(context.Background(), of)).To(Succeed())
		w.attempt(run, 1, progress(1))
		Eventually(func() []endpoint.Run { return w.settings().Runs }).Should(
			HaveExactElements(HaveField("Budgets", []string{"trial"})))

		By("changing the label of the run, as without the policy")
		Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(run), run)).To(Succeed())
		run.Labels["team"] = "free"
		Expect(kube.Update(context.Background(), run)).To(Succeed())
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False " + shows(problem.EndpointForbidden)))
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring("the run has the label team=free"))
		})
		Eventually(func() []endpoint.Run { return w.settings().Runs }).Should(BeEmpty())
	})

	It("leaves an endpoint alone that the manager of another namespace serves, and says so", func() {
		w := emptyEnv()
		of := w.endpointOf()
		of.Status.Namespace = "another"
		Expect(kube.Status().Update(context.Background(), of)).To(Succeed())
		w.startManager(&managerOptions{endpoints: []string{w.namespace}})
		w.environment()
		run := w.create(w.named)
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False " + shows(problem.EndpointsDisabled)))
			g.Expect(message(run, v1alpha1.ConditionAccepted)).To(ContainSubstring(`the release in namespace "another" serves`))
		})
		Eventually(func() []string { return w.eventReasons(of) }).Should(ContainElement("ManagedByOtherManager"))
		Consistently(func(g Gomega) {
			w.advance(time.Second)
			g.Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(of), of)).To(Succeed())
			g.Expect(of.Status).To(Equal(v1alpha1.TinkerEndpointStatus{Namespace: "another"}), "two managers fight")
		}).Should(Succeed())
		broker := client.ObjectKey{Namespace: w.namespace, Name: endpoint.ObjectName(of.Name)}
		Expect(apierrors.IsNotFound(kube.Get(context.Background(), broker, &appsv1.Deployment{}))).To(BeTrue())

		By("deleting the endpoint and creating it again")
		Expect(kube.Delete(context.Background(), of)).To(Succeed())
		of = w.endpointOf()
		w.awaitEndpoint(of, func(g Gomega) { g.Expect(of.Status.Namespace).To(Equal(w.namespace)) })
		w.attempt(run, 1, progress(3))
	})

	It("takes an endpoint over whose release is gone, and makes its broker once the other one's has ended", func() {
		w := emptyEnv()
		of := w.endpointOf()
		of.Status.Namespace, of.Status.RenewTime = "another", new(metav1.NewTime(w.clock.now().Truncate(time.Second)))
		Expect(kube.Status().Update(context.Background(), of)).To(Succeed())
		w.startManager(&managerOptions{endpoints: []string{w.namespace}})
		Eventually(func() []string { return w.eventReasons(of) }).Should(ContainElement("ManagedByOtherManager"))
		w.advance(endpoint.ClaimDuration - time.Second)
		Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(of), of)).To(Succeed())
		Expect(of.Status.Namespace).To(Equal("another"))
		w.awaitEndpoint(of, func(g Gomega) { g.Expect(of.Status.Namespace).To(Equal(w.namespace)) })
		Expect(w.eventReasons(of)).To(ContainElement("TakenOver"))
		broker := client.ObjectKey{Namespace: w.namespace, Name: endpoint.ObjectName(of.Name)}
		Eventually(func(g Gomega) {
			w.advance(time.Second)
			g.Expect(kube.Get(context.Background(), broker, &appsv1.Deployment{})).To(Succeed())
		}).Should(Succeed())
		Expect(w.clock.now()).To(BeTemporally(">=", of.Status.TakeoverTime.Add(endpoint.TakeoverDelay)))
	})

	It("says that it serves no endpoints where that is so", func() {
		w := newEnv()
		w.environment()
		run := w.create(w.named)
		w.eventually(run, func(g Gomega) {
			g.Expect(coded(run, v1alpha1.ConditionAccepted)).To(Equal("False " + shows(problem.EndpointsDisabled)))
		})
	})
})
