// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// asNotTinker sets CategoryNotTinker if the first request, which every server of the API answers, failed in a way that
// no such server does.
func asNotTinker(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	switch e.Category {
	case tinker.CategoryNotFound, tinker.CategoryUnsupported, tinker.CategoryProtocol:
		e.Category = tinker.CategoryNotTinker
	case tinker.CategoryUnreachable:
		if e.Err != nil && e.Code != "" { // Client and server do not agree on TLS.
			e.Category = tinker.CategoryNotTinker
		}
	}
	return err
}
