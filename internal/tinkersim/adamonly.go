// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import "github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"

// optimizerType is the field by which newer versions of the API name an optimizer.
type optimizerType struct {
	Type string `json:"type"`
}

// adamOnly returns a copy of the endpoint that refuses requests for an optimizer other than AdamW. Newer versions of
// the API have other optimizers. Ignoring the name would train with settings that the client did not ask for.
func (e endpoint) adamOnly() endpoint {
	read := e.read
	e.read = func(r *request) (fault.Call, action, error) {
		var named struct {
			Config optimizerType `json:"optimizer_config"`
			Params optimizerType `json:"optimizer_params"`
		}
		if err := decode(r.body, &named); err != nil {
			return fault.Call{}, nil, err
		}
		for _, optimizer := range []optimizerType{named.Config, named.Params} {
			if optimizer.Type != "" && optimizer.Type != "adamw" {
				return fault.Call{}, nil, badRequest("the optimizer %q is not supported: only adamw is", optimizer.Type)
			}
		}
		return read(r)
	}
	return e
}
