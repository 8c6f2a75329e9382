// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds creates and updates the operator's custom resource definitions. It never removes a field from a
// definition: the API server would delete the field from each object at the object's next write.
package crds

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/config/crd"
)

// keepPolicy is the annotation that makes Helm keep a CRD when a release is uninstalled: deleting a CRD deletes every
// object of its kind.
const keepPolicy = "helm.sh/resource-policy"

// Apply creates or updates the CRDs that this program embeds, and waits until the API server serves them.
func Apply(ctx context.Context, c client.Client, log *slog.Logger) error {
	for _, data := range [][]byte{crd.TinkerEndpoints, crd.RewardEnvironments, crd.TrainingRuns} {
		embedded := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &embedded.Object); err != nil {
			return fmt.Errorf("decoding embedded CRD: %w", err)
		}
		if err := apply(ctx, c, embedded, log); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, c client.Client, embedded *unstructured.Unstructured, log *slog.Logger) error {
	name := embedded.GetName()
	err := retry.OnError(retry.DefaultBackoff, raced, func() error {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(embedded.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(embedded), live)
		if apierrors.IsNotFound(err) {
			created := embedded.DeepCopy()
			annotate(created, embedded)
			log.Info("creating CRD", "name", name)
			return c.Create(ctx, created)
		}
		if err != nil {
			return err
		}
		next, err := Next(live, embedded)
		if err != nil {
			return err
		}
		if next == nil {
			log.Info("keeping CRD, which is of a later release", "name", name)
			return nil
		}
		log.Info("updating CRD", "name", name)
		return c.Update(ctx, next)
	})
	if err != nil {
		return fmt.Errorf("applying CRD %s: %w", name, err)
	}
	return established(ctx, c, embedded)
}

// raced reports whether an error says that another program wrote the CRD at the same time.
func raced(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// Next returns the next version of the CRD in a cluster; nil if the CRD stays, because it has all fields of the
// embedded CRD and more. It fails if each of them has fields that the other lacks.
func Next(live, embedded *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	has, gets := fields(live), fields(embedded)
	lost, gained := difference(has, gets), difference(gets, has)
	if len(lost) > 0 && len(gained) > 0 {
		return nil, fmt.Errorf("the CRD in the cluster has fields that this release does not know (%s), and lacks fields "+
			"of this release (%s). "+
			"An update would delete the former from all objects. If that is intended, "+
			"apply the CRD of this release with kubectl",
			some(lost), some(gained))
	}
	if len(lost) > 0 {
		return nil, nil
	}
	next := live.DeepCopy()
	next.Object["spec"] = embedded.DeepCopy().Object["spec"]
	annotate(next, embedded)
	return next, nil
}

// annotate copies the annotations of the embedded CRD to a CRD, and makes Helm keep the CRD.
func annotate(object, embedded *unstructured.Unstructured) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, embedded.GetAnnotations())
	annotations[keepPolicy] = "keep"
	object.SetAnnotations(annotations)
}

// fields returns the paths of all fields in all versions of a CRD.
func fields(object *unstructured.Unstructured) map[string]bool {
	found := map[string]bool{}
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok {
			continue
		}
		name, _, _ := unstructured.NestedString(version, "name")
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		addFields(found, name, schema)
	}
	return found
}

func addFields(found map[string]bool, path string, schema map[string]any) {
	properties, _, _ := unstructured.NestedMap(schema, "properties")
	for name, property := range properties {
		found[path+"."+name] = true
		if nested, ok := property.(map[string]any); ok {
			addFields(found, path+"."+name, nested)
		}
	}
	for key, suffix := range map[string]string{"items": "[]", "additionalProperties": "{}"} {
		if nested, ok := schema[key].(map[string]any); ok {
			addFields(found, path+suffix, nested)
		}
	}
}

// difference returns the sorted elements of a that are not in b.
func difference(a, b map[string]bool) []string {
	missing := maps.Clone(a)
	maps.DeleteFunc(missing, func(path string, _ bool) bool { return b[path] })
	return slices.Sorted(maps.Keys(missing))
}

// some names the first few of a list.
func some(paths []string) string {
	const most = 5
	if len(paths) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
	}
	return strings.Join(paths, ", ")
}

// established waits until the API server serves a CRD.
func established(ctx context.Context, c client.Client, embedded *unstructured.Unstructured) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(embedded.GroupVersionKind())
		if err := c.Get(ctx, client.ObjectKeyFromObject(embedded), live); err != nil {
			return fmt.Errorf("reading CRD %s: %w", embedded.GetName(), err)
		}
		if isEstablished(live) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API server to serve CRD %s: %w", embedded.GetName(), ctx.Err())
		case <-ticker.C:
		}
	}
}

func isEstablished(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == "Established" && condition["status"] == "True"
	})
}
