// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

func TestKindOf(t *testing.T) {
	pass := Operation{Refused: DataRefused, Missing: LostModel}
	call := func(category tinker.Category) error {
		return fmt.Errorf("calling: %w", &client.Error{Category: category})
	}
	cases := map[string]struct {
		err  error
		want Kind
	}{
		"no error":                       {nil, Other},
		"an error of the program":        {errors.New("x"), Other},
		"a call that was canceled":       {call(tinker.CategoryCanceled), Other},
		"a call whose context ended":     {context.Canceled, Other},
		"refused data":                   {pass.Failed(call(tinker.CategoryUser), "x"), DataRefused},
		"a body that is too large":       {pass.Failed(call(tinker.CategoryTooLarge), "x"), DataRefused},
		"a model that the server lost":   {pass.Failed(call(tinker.CategoryNotFound), "x"), LostModel},
		"a model whose submit failed":    {pass.Failed(client.ErrModelBroken, "x"), LostModel},
		"a failed result":                {pass.Failed(call(tinker.CategoryServer), "x"), Outage},
		"a result without a reason":      {pass.Failed(call(tinker.CategoryUnknown), "x"), Outage},
		"a lost future":                  {pass.Failed(call(tinker.CategoryFutureLost), "x"), Outage},
		"a refused key":                  {pass.Failed(call(tinker.CategoryUnauthorized), "x"), CredentialsRefused},
		"a server of another kind":       {pass.Failed(call(tinker.CategoryNotTinker), "x"), NotTinker},
		"an unclassified refusal":        {call(tinker.CategoryUser), Outage},
		"an unclassified refused key":    {call(tinker.CategoryUnauthorized), CredentialsRefused},
		"an endpoint that lists nothing": {call(tinker.CategoryUnsupported), Missing},
		"a checkpoint that is missing":   {call(tinker.CategoryNotFound), Missing},
		"a failure keeps its kind": {pass.Failed(fmt.Errorf("x: %w", New(SettingsRefused, errors.New("x"), "x")), "y"),
			SettingsRefused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := KindOf(tc.err); got != tc.want {
				t.Errorf("the kind of %v is %d, want %d", tc.err, got, tc.want)
			}
		})
	}
}
