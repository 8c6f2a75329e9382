// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// editorPage has the spec of an object in a field that can be edited, or asks whether to apply a changed spec.
type editorPage struct {
	Name, Back, Address string
	// Version is the version of the spec that a person changes.
	Version, Text, Command string
	Rows                   int
	Causes                 []cause
	// Refused is the API server's refusal of the object.
	Refused string
	// Checked says that the API server accepts the spec, and Changes are the fields in which the spec differs.
	Checked bool
	Changes []difference
}

// cause is a problem of a line of a spec.
type cause struct {
	Line           int
	Field, Message string
}

// mostSpec bounds the text of a spec.
const mostSpec = 1 << 20

// editable is an object whose spec is edited.
type editable struct {
	kind, resource, back, section string
	key                           client.ObjectKey
}

func editedRun(r *http.Request) editable {
	key := client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	return editable{manifest.KindRun, "trainingrun", address(key.Namespace, key.Name), "runs", key}
}

func editedEnvironment(r *http.Request) editable {
	key := client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	return editable{manifest.KindEnvironment, "rewardenvironment", environmentAddress(key.Namespace, key.Name),
		"environments", key}
}

// edit returns the handlers of the page on which an object's spec is edited: one that shows it, and one that checks and
// applies it.
func (s *Site) edit(of func(*http.Request) editable) (show, change handler) {
	show = func(r *http.Request) (view, error) {
		e := of(r)
		object, err := s.object(r.Context(), e)
		if err != nil {
			return view{}, err
		}
		text, err := specText(object.Object["spec"])
		if err != nil {
			return view{}, err
		}
		return e.view(editorPage{Text: text, Version: versionOf(object)}), nil
	}
	return show, func(r *http.Request) (view, error) { return s.changeSpec(r, of(r)) }
}

func (e editable) view(page editorPage) view {
	page.Name, page.Back, page.Address = e.key.Name, e.back, e.back+"/spec"
	page.Rows = strings.Count(page.Text, "\n") + 2
	page.Command = fmt.Sprintf("kubectl edit %s %s --namespace %s", e.resource, e.key.Name, e.key.Namespace)
	return view{template: "editor.html", title: "Edit " + e.key.Name, section: e.section, data: page}
}

// object reads an object as the API server has it.
func (s *Site) object(ctx context.Context, e editable) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(e.kind))
	if err := s.Connection.Get(ctx, e.key, object); err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", e.kind, e.key.Name, err)
	}
	return object, nil
}

// versionOf names the version of an object's spec. The resource version changes with the status as well, which a person
// does not change.
func versionOf(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s/%d", object.GetUID(), object.GetGeneration())
}

// changeSpec checks an edited spec, and applies it once a person has confirmed it.
func (s *Site) changeSpec(r *http.Request, e editable) (view, error) {
	page := editorPage{Text: strings.ReplaceAll(r.PostFormValue("spec"), "\r\n", "\n"),
		Version: r.PostFormValue("version")}
	if r.PostFormValue("step") == "edit" {
		return e.view(page), nil
	}
	before, err := s.object(r.Context(), e)
	if err != nil {
		return view{}, err
	}
	stored, _ := before.Object["spec"].(map[string]any)
	edited, causes := parseSpec(page.Text, stored)
	if len(causes) > 0 {
		page.Causes = causes
		return e.view(page), nil
	}
	apply := r.PostFormValue("step") == "apply"
	var options []client.UpdateOption
	if !apply {
		options = append(options, client.DryRunAll)
	}
	if err := s.update(r.Context(), e, page.Version, edited, options...); err != nil {
		page.Causes = causesOf(e.kind, page.Text, err)
		page.Refused = output.Safe(err.Error())
		return e.view(page), nil
	}
	if apply {
		return view{redirect: e.back}, nil
	}
	page.Checked = true
	if page.Changes, err = changesOf(stored, edited); err != nil {
		return view{}, err
	}
	return e.view(page), nil
}

// update replaces the spec of an object, if the stored spec still has the version that a person has changed.
func (s *Site) update(ctx context.Context, e editable, version string, spec map[string]any,
	options ...client.UpdateOption) error {
	strict := client.WithFieldValidation(s.Connection.Client, metav1.FieldValidationStrict)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := s.object(ctx, e)
		if err != nil {
			return err
		}
		if versionOf(object) != version {
			return fmt.Errorf("the spec was changed meanwhile: %w", &overtakenError{apierrors.NewConflict(
				schema.GroupResource{Group: v1alpha1.SchemeGroupVersion.Group, Resource: e.resource + "s"}, e.key.Name,
				errors.New("the object has been modified; please apply your changes to the latest version and try again"))})
		}
		object.Object["spec"] = spec
		return strict.Update(ctx, object, options...)
	})
}

// overtakenError is a conflict with a change of the spec, which no further try resolves.
type overtakenError struct{ conflict error }

func (e *overtakenError) Error() string { return e.conflict.Error() }

// causesOf returns the API server's problems with the lines of a spec.
func causesOf(kind, text string, err error) []cause {
	lines := manifest.LinesOf(text)
	var all []cause
	for _, c := range manifest.Causes(kind, err) {
		path, inSpec := strings.CutPrefix(c.Field, "spec.")
		found := cause{Field: c.Field, Message: output.Safe(c.Message)}
		if inSpec {
			found.Line = lines.Line(path)
		}
		all = append(all, found)
	}
	slices.SortStableFunc(all, func(a, b cause) int { return cmp.Compare(a.Line, b.Line) })
	return all
}

// changesOf returns the fields in which an edited spec differs.
func changesOf(before, after map[string]any) ([]difference, error) {
	specs := make([]map[string]string, 2)
	for i, spec := range []map[string]any{before, after} {
		var err error
		if specs[i], err = observe.Flatten(spec); err != nil {
			return nil, err
		}
	}
	var all []difference
	for _, path := range observe.Differences(specs) {
		all = append(all, difference{path, hide(path, specs[1][path]), hide(path, specs[0][path])})
	}
	return all, nil
}
