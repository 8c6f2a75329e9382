// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/internal/controller/metrics"
)

// shippedRole reads a ClusterRole of config/rbac, under a name of its own.
func shippedRole(file, name string) *rbacv1.ClusterRole {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", file))
	Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.ClusterRole{}
	Expect(yaml.UnmarshalStrict(data, role)).To(Succeed())
	role.Name = name
	return role
}

// grant creates the role and gives it to a subject.
func grant(role *rbacv1.ClusterRole, subject rbacv1.Subject) {
	GinkgoHelper()
	ctx := context.Background()
	Expect(kube.Create(ctx, role)).To(Succeed())
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}
	Expect(kube.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func() {
		Expect(kube.Delete(ctx, binding)).To(Succeed())
		Expect(kube.Delete(ctx, role)).To(Succeed())
	})
}

// serviceAccountToken creates a ServiceAccount, and returns a token of it.
func (w *env) serviceAccountToken(name string) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	Expect(kube.Create(context.Background(), account)).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	Expect(kube.SubResource("token").Create(context.Background(), account, request)).To(Succeed())
	return request.Status.Token
}

// metricsReader sends requests for the manager's metrics as a user whom the API server knows.
type metricsReader struct {
	*env
	handler http.Handler
}

// newMetricsReader returns a reader of metrics whose manager has no rights yet.
func newMetricsReader() metricsReader {
	GinkgoHelper()
	w := emptyEnv()
	manager, err := controlPlane.AddUser(envtest.User{Name: "metrics-" + w.namespace}, nil)
	Expect(err).NotTo(HaveOccurred())
	client, err := rest.HTTPClientFor(manager.Config())
	Expect(err).NotTo(HaveOccurred())
	filter, err := metrics.Filter(manager.Config(), client)
	Expect(err).NotTo(HaveOccurred())
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	Expect(err).NotTo(HaveOccurred())
	return metricsReader{env: w, handler: handler}
}

// grantRoles grants the manager and the account prometheus the roles that are shipped for them.
func (r metricsReader) grantRoles() {
	GinkgoHelper()
	grant(shippedRole("metrics_auth_role.yaml", "auth-"+r.namespace),
		rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "metrics-" + r.namespace})
	grant(shippedRole("metrics_reader_role.yaml", "reader-"+r.namespace),
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: r.namespace, Name: "prometheus"})
}

func (r metricsReader) status(method, path, authorization string) int {
	request := httptest.NewRequestWithContext(context.Background(), method, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	r.handler.ServeHTTP(recorder, request)
	return recorder.Code
}

var _ = Describe("The manager's metrics", func() {
	It("are read only with a token of an account that has the role of readers", func() {
		r := newMetricsReader()
		r.grantRoles()
		reader, other := r.serviceAccountToken("prometheus"), r.serviceAccountToken("other")
		// The API server learns of roles a little later than they are created, and a refusal is remembered for some seconds.
		Eventually(func() int { return r.status(http.MethodGet, "/metrics", "Bearer "+reader) }).
			Should(Equal(http.StatusOK))
		for range 2 { // the second time from remembered decisions
			Expect(r.status(http.MethodGet, "/metrics", "Bearer "+reader)).To(Equal(http.StatusOK))
			Expect(r.status(http.MethodGet, "/metrics", "bearer "+reader)).To(Equal(http.StatusOK))
			Expect(r.status(http.MethodPost, "/metrics", "Bearer "+reader)).To(Equal(http.StatusForbidden))
			Expect(r.status(http.MethodGet, "/other", "Bearer "+reader)).To(Equal(http.StatusForbidden))
			Expect(r.status(http.MethodGet, "/metrics", "Bearer "+other)).To(Equal(http.StatusForbidden))
			Expect(r.status(http.MethodGet, "/metrics", "Bearer "+reader+"x")).To(Equal(http.StatusUnauthorized))
			Expect(r.status(http.MethodGet, "/metrics", "Basic "+reader)).To(Equal(http.StatusUnauthorized))
			Expect(r.status(http.MethodGet, "/metrics", "")).To(Equal(http.StatusUnauthorized))
		}
	})

	It("answer 500 while the manager may not ask the API server, and remember nothing of it", func() {
		r := newMetricsReader()
		token := r.serviceAccountToken("prometheus")
		status := func() int { return r.status(http.MethodGet, "/metrics", "Bearer "+token) }
		Expect(status()).To(Equal(http.StatusInternalServerError))
		r.grantRoles()
		Eventually(status).Should(Equal(http.StatusOK))
	})
})
