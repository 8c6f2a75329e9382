// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/json"
	"fmt"
)

// EncodeForwardBackwardJSON encodes a pass as clients before 0.25 do, which servers without protobuf require: the body
// of POST forward_backward, or of POST forward if the pass is ForwardOnly.
func EncodeForwardBackwardJSON(r ForwardBackwardRequest) ([]byte, error) {
	input := &ForwardBackwardInput{Data: r.Data, LossFn: r.Loss.Name, LossFnConfig: r.Loss.Config}
	body := ForwardBackwardJSON{ModelID: r.ModelID, SeqID: r.SeqID}
	if r.ForwardOnly {
		body.Forward = input
	} else {
		body.Backward = input
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding data in JSON: %w", err)
	}
	return encoded, nil
}
