// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

func TestCodeOf(t *testing.T) {
	pass := Operation{Refused: problem.DataRefused, Missing: LostModel}
	call := func(category tinker.Category) error {
		return fmt.Errorf("calling: %w", &client.Error{Category: category})
	}
	cases := map[string]struct {
		err  error
		want problem.Code
	}{
		"no error":                       {nil, ""},
		"an error of the program":        {errors.New("x"), ""},
		"a call that was canceled":       {call(tinker.CategoryCanceled), ""},
		"a call whose context ended":     {context.Canceled, ""},
		"refused data":                   {pass.Failed(call(tinker.CategoryUser), "x"), problem.DataRefused},
		"a body that is too large":       {pass.Failed(call(tinker.CategoryTooLarge), "x"), problem.DataRefused},
		"a model that the server lost":   {pass.Failed(call(tinker.CategoryNotFound), "x"), LostModel},
		"a model whose submit failed":    {pass.Failed(client.ErrModelBroken, "x"), LostModel},
		"a failed result":                {pass.Failed(call(tinker.CategoryServer), "x"), Outage},
		"a result without a reason":      {pass.Failed(call(tinker.CategoryUnknown), "x"), Outage},
		"a lost future":                  {pass.Failed(call(tinker.CategoryFutureLost), "x"), Outage},
		"a refused key":                  {pass.Failed(call(tinker.CategoryUnauthorized), "x"), problem.KeyRefused},
		"a server of another kind":       {pass.Failed(call(tinker.CategoryNotTinker), "x"), problem.EndpointNotTinker},
		"an unclassified refusal":        {call(tinker.CategoryUser), Outage},
		"an unclassified refused key":    {call(tinker.CategoryUnauthorized), problem.KeyRefused},
		"an endpoint that lists nothing": {call(tinker.CategoryUnsupported), Missing},
		"a checkpoint that is missing":   {call(tinker.CategoryNotFound), Missing},
		"a failure keeps its kind": {pass.Failed(fmt.Errorf("x: %w", New(problem.SettingsRefused, errors.New("x"), "x")),
			"y"),
			problem.SettingsRefused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := CodeOf(tc.err); got != tc.want {
				t.Errorf("the code of %v is %q, want %q", tc.err, got, tc.want)
			}
		})
	}
}
