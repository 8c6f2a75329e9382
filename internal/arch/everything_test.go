// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
)

const (
	everything = "../../test/integration/testdata/everything.yaml"
	apiPackage = "github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// TestEverythingHasEachField requires that the objects of everything.yaml, which tests apply, are valid, and that they
// set each field of the specs, including each member of a union, in at least one place. The fields of Kubernetes types
// are not required.
func TestEverythingHasEachField(t *testing.T) {
	data, err := os.ReadFile(everything)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	given := fields{}
	for _, object := range objects.Runs {
		run := read[v1alpha1.TrainingRun](t, object)
		given.addGiven(reflect.ValueOf(run.Spec))
	}
	for _, object := range objects.Environments {
		environment := read[v1alpha1.RewardEnvironment](t, object)
		given.addGiven(reflect.ValueOf(environment.Spec))
	}
	all := fields{}
	all.addAll(reflect.TypeFor[v1alpha1.TrainingRunSpec]())
	all.addAll(reflect.TypeFor[v1alpha1.RewardEnvironmentSpec]())
	if len(all) < 200 {
		t.Fatalf("found %d fields of the API, want at least 200", len(all))
	}
	var missing []string
	for name := range all {
		if !given[name] {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("%s has no example of these fields; add one for each:\n%s", everything, strings.Join(missing, "\n"))
	}
}

// read checks an object as the API server does, and reads the fields of the file, without defaults.
func read[T any](t *testing.T, object *unstructured.Unstructured) (into T) {
	t.Helper()
	if err := manifest.Check(t.Context(), object.DeepCopy()); err != nil {
		t.Error(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &into); err != nil {
		t.Error(err)
	}
	return into
}

// fields is a set of names of fields, such as algorithm.Teacher.discount.
type fields map[string]bool

func (f fields) addAll(of reflect.Type) {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, of.Kind()) {
		of = of.Elem()
	}
	for name, field := range fieldsOf(of) {
		if !f[name] {
			f[name] = true
			f.addAll(field.Type)
		}
	}
	for _, embedded := range embeddedIn(of) {
		f.addAll(embedded.Type)
	}
}

// addGiven adds the fields of a value that are set.
func (f fields) addGiven(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			f.addGiven(value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			f.addGiven(value.Index(i))
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			f.addGiven(value.MapIndex(key))
		}
	case reflect.Struct:
		for name, field := range fieldsOf(value.Type()) {
			if one := value.FieldByIndex(field.Index); !one.IsZero() {
				f[name] = true
				f.addGiven(one)
			}
		}
		for _, embedded := range embeddedIn(value.Type()) {
			f.addGiven(value.FieldByIndex(embedded.Index))
		}
	}
}

// fieldsOf returns the JSON fields of a struct of the API by their names.
func fieldsOf(of reflect.Type) map[string]reflect.StructField {
	found := map[string]reflect.StructField{}
	if of.Kind() != reflect.Struct || !strings.HasPrefix(of.PkgPath(), apiPackage) {
		return found
	}
	for i := range of.NumField() {
		field := of.Field(i)
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			found[of.String()+"."+name] = field
		}
	}
	return found
}

// embeddedIn returns the embedded fields of a struct of the API. JSON has the fields of an embedded struct in its
// place.
func embeddedIn(of reflect.Type) (found []reflect.StructField) {
	if of.Kind() != reflect.Struct || !strings.HasPrefix(of.PkgPath(), apiPackage) {
		return nil
	}
	for i := range of.NumField() {
		if field := of.Field(i); field.Anonymous {
			found = append(found, field)
		}
	}
	return found
}
