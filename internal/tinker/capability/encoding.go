// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// findEncoding finds out whether the server reads protobuf, by a forward pass of the first model, and makes the
// client send training data in JSON if it does not. If the server rejects a loss or data in both encodings, that says
// nothing about protobuf.
func (k *check) findEncoding(ctx context.Context) error {
	if !k.findings.wants(Protobuf) || k.findings.support(Protobuf) != Unknown {
		return nil
	}
	for _, loss := range []tinker.LossName{tinker.LossCrossEntropy, tinker.LossImportanceSampling} {
		inProtobuf, err := k.first.FindEncoding(ctx, []tinker.Datum{datum(loss, uniform(0), uniform(1))},
			tinker.Loss{Name: loss})
		if isRejected(err) {
			// A model cannot be used any more after one of its operations was rejected.
			if k.first, err = k.trainer.create(ctx, k.trainer.Lora); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("finding the encoding of training data: %w", err)
		}
		if inProtobuf {
			k.findings.record(Protobuf, Supported, "")
		} else {
			k.findings.record(Protobuf, Unsupported, "the server reads training data in JSON")
		}
		return nil
	}
	return nil
}
