// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/tinker-operator/tinker-operator/config/crd"
)

// checker checks objects of one kind by the schema and the rules of its definition, with the API server's own code.
type checker struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

var checkers = map[string]func() (*checker, error){
	KindRun:         sync.OnceValues(func() (*checker, error) { return newChecker(crd.TrainingRuns) }),
	KindEnvironment: sync.OnceValues(func() (*checker, error) { return newChecker(crd.RewardEnvironments) }),
}

func newChecker(definition []byte) (*checker, error) {
	props, structural, err := schemaOf(definition)
	if err != nil {
		return nil, err
	}
	schema, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of the kind: %w", err)
	}
	return &checker{structural: structural, schema: schema, rules: cel.NewValidator(structural, true,
		celconfig.PerCallLimit)}, nil
}

// SetDefaults sets the defaults of an object's content that the schema of its kind has, as the API server does.
func SetDefaults(kind string, content map[string]any) error {
	of, ok := checkers[kind]
	if !ok {
		return fmt.Errorf("setting the defaults of a %s: the kind is not known", kind)
	}
	c, err := of()
	if err != nil {
		return err
	}
	defaulting.Default(content, c.structural)
	return nil
}

// Check checks an object as the API server does at kubectl apply: unknown fields, types, ranges and rules. It also
// sets the object's defaults.
func Check(ctx context.Context, object *unstructured.Unstructured) error {
	make, ok := checkers[object.GetKind()]
	if !ok {
		return fmt.Errorf("checking %s %q: the kind is not known", object.GetKind(), object.GetName())
	}
	c, err := make()
	if err != nil {
		return err
	}
	// Whole numbers that were read from YAML are floats, which rules do not accept as integers.
	data, err := object.MarshalJSON()
	if err == nil {
		err = object.UnmarshalJSON(data)
	}
	if err != nil {
		return fmt.Errorf("reading %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	if err := c.check(ctx, object); err != nil {
		return fmt.Errorf("%s %q is invalid: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func (c *checker) check(ctx context.Context, object *unstructured.Unstructured) error {
	unknown, found := c.validate(ctx, object)
	var errs []error
	for _, path := range unknown {
		errs = append(errs, fmt.Errorf("unknown field %s%s", path, suggestion(c.structural, path)))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, e := range found {
		errs = append(errs, e)
	}
	return Suggest(object.GetKind(), errors.Join(errs...))
}

// Validate returns the paths of the fields of an object that the schema of its kind lacks, or else the violations of
// the schema and the rules by its fields. It sets the object's defaults.
func Validate(ctx context.Context, object *unstructured.Unstructured) (unknown []string, found field.ErrorList,
	err error) {
	make, ok := checkers[object.GetKind()]
	if !ok {
		return nil, nil, fmt.Errorf("checking %s %q: the kind is not known", object.GetKind(), object.GetName())
	}
	c, err := make()
	if err != nil {
		return nil, nil, err
	}
	unknown, found = c.validate(ctx, object)
	return unknown, found, nil
}

func (c *checker) validate(ctx context.Context, object *unstructured.Unstructured) (unknown []string,
	found field.ErrorList) {
	copied := object.DeepCopy()
	unknown = pruning.PruneWithOptions(copied.Object, c.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return unknown, nil
	}
	defaulting.Default(object.Object, c.structural)
	found = append(found, validation.ValidateCustomResource(nil, object.Object, c.schema)...)
	found = append(found, listtype.ValidateListSetsAndMaps(nil, c.structural, object.Object)...)
	if len(found) == 0 {
		rules, _ := c.rules.Validate(ctx, nil, c.structural, object.Object, nil, celconfig.RuntimeCELCostBudget)
		found = append(found, rules...)
	}
	return nil, found
}
