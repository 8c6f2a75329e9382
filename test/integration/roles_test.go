// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// userRoles are Kubernetes' own roles that include runs and environments. Each role includes the roles after it. Its
// value is a verb that the roles after it do not permit.
var userRoles = map[string]string{"admin": "deletecollection", "edit": "create", "view": "get"}

// userRolesIn returns the roles of rendered manifests that Kubernetes' own roles are to include.
func userRolesIn(manifests []byte) []rbacv1.ClusterRole {
	GinkgoHelper()
	var roles []rbacv1.ClusterRole
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		var object metav1.PartialObjectMetadata
		Expect(yaml.Unmarshal(document, &object)).To(Succeed())
		for name := range userRoles {
			if object.Kind == "ClusterRole" && object.Name == "tinker-operator-"+name {
				var role rbacv1.ClusterRole
				Expect(yaml.UnmarshalStrict(document, &role)).To(Succeed())
				roles = append(roles, role)
			}
		}
	}
	Expect(roles).To(HaveLen(len(userRoles)))
	return roles
}

// isAllowed asks the API server whether a user may do something in a namespace; resource may have a subresource.
func isAllowed(user, namespace, verb, resource string) bool {
	GinkgoHelper()
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: v1alpha1.SchemeGroupVersion.Group, Resource: resource,
			Subresource: subresource,
		},
	}}
	Expect(kube.Create(context.Background(), review)).To(Succeed())
	return review.Status.Allowed
}

// clientOf returns a client that acts as a user.
func clientOf(user string) client.Client {
	GinkgoHelper()
	as := rest.CopyConfig(apiConfig)
	as.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(as, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// giveRole binds a user to one of Kubernetes' own roles in a namespace.
func giveRole(user, namespace, role string) {
	GinkgoHelper()
	Expect(kube.Create(context.Background(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
}

// The real clusterrole-aggregation-controller adds the rules to Kubernetes' own roles.
var _ = DescribeTable("Users with Kubernetes' own roles", func(manifests func() []byte) {
	ctx := context.Background()
	w, other := emptyEnv(), emptyEnv()
	user := func(role string) string { return role + "-of-" + w.namespace }
	for role := range userRoles {
		giveRole(user(role), w.namespace, role)
	}
	roles := userRolesIn(manifests())
	for _, role := range roles {
		Expect(client.IgnoreNotFound(kube.Delete(ctx, role.DeepCopy()))).To(Succeed())
	}
	for role := range userRoles {
		Eventually(isAllowed).WithArguments(user(role), w.namespace, "get", "trainingruns").Should(BeFalse(),
			"%s without the roles", role)
	}
	for _, role := range roles {
		Expect(kube.Create(ctx, &role)).To(Succeed())
	}
	for role, verb := range userRoles {
		Eventually(isAllowed).WithArguments(user(role), w.namespace, verb, "trainingruns").Should(BeTrue(), role)
		changes, reads := role != "view", true
		for _, resource := range []string{"trainingruns", "rewardenvironments"} {
			for verb, want := range map[string]bool{
				"get": reads, "list": reads, "watch": reads,
				"create": changes, "update": changes, "patch": changes, "delete": changes, "deletecollection": role == "admin",
			} {
				Expect(isAllowed(user(role), w.namespace, verb, resource)).To(Equal(want), "%s: %s %s", role, verb, resource)
				Expect(isAllowed(user(role), other.namespace, verb, resource)).To(BeFalse(), "%s: %s %s of another namespace", role,
					verb, resource)
			}
			Expect(isAllowed(user(role), w.namespace, "get", resource+"/status")).To(BeTrue(), role)
			Expect(isAllowed(user(role), w.namespace, "update", resource+"/status")).To(BeFalse(), role)
		}
		Expect(isAllowed(user(role), w.namespace, "patch", "trainingruns/scale")).To(Equal(changes), role)
	}

	run := w.newRun()
	Expect(apierrors.IsForbidden(clientOf(user("view")).Create(ctx, run.DeepCopy()))).To(BeTrue())
	Expect(clientOf(user("edit")).Create(ctx, run)).To(Succeed())
	var list v1alpha1.TrainingRunList
	Expect(clientOf(user("view")).List(ctx, &list, client.InNamespace(w.namespace))).To(Succeed())
	Expect(list.Items).To(HaveLen(1))
	Expect(apierrors.IsForbidden(clientOf(user("view")).Delete(ctx, run.DeepCopy()))).To(BeTrue())
	Expect(clientOf(user("edit")).Delete(ctx, run)).To(Succeed())
},
	Entry("of the chart", func() []byte {
		return command("go", "tool", "-modfile=hack/tools/go.mod", "helm", "template", "tinker-operator",
			"charts/tinker-operator",
			"--show-only", "templates/roles.yaml")
	}),
	Entry("of config/default", func() []byte {
		return command(filepath.Join(binaries, "kubectl"), "kustomize", "config/default")
	}),
)
