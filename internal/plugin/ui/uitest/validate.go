// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package uitest

import (
	"context"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
)

// validating makes the cluster in memory refuse objects as the API server does, by the schema and the rules of their
// kind, unless a test has hooks of its own.
func validating(hooks interceptor.Funcs) interceptor.Funcs {
	if hooks.Update == nil {
		hooks.Update = func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.UpdateOption) error {
			if err := refusal(ctx, object); err != nil {
				return err
			}
			return c.Update(ctx, object, options...)
		}
	}
	if hooks.Create == nil {
		hooks.Create = func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.CreateOption) error {
			if err := refusal(ctx, object); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		}
	}
	return hooks
}

// refusal returns the API server's refusal of an object; nil if it accepts the object.
func refusal(ctx context.Context, object client.Object) error {
	written, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	unknown, found, err := manifest.Validate(ctx, written.DeepCopy())
	switch {
	case err != nil:
		return err
	case len(unknown) > 0:
		var fields []string
		for _, path := range unknown {
			fields = append(fields, "unknown field "+strconv.Quote(path))
		}
		return apierrors.NewBadRequest("strict decoding error: " + strings.Join(fields, ", "))
	case len(found) > 0:
		return apierrors.NewInvalid(written.GroupVersionKind().GroupKind(), written.GetName(), found)
	}
	return nil
}
