// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// NeverRepeatSteps makes submits of forward_backward and optim_step fail permanently once an attempt may have been
// executed, for servers that would execute a repeat once more. Repeats of all other operations are harmless: they
// change nothing, or save under a name that is then in use.
func (c *Client) NeverRepeatSteps() { c.executesRepeats.Store(true) }

// RecognisesRepeats reports whether the server recognises a submit that is repeated under its number, by a forward
// pass: it then answers with the same future.
func (m *Model) RecognisesRepeats(ctx context.Context, data []tinker.Datum, loss tinker.Loss) (bool, error) {
	config, err := m.caller.connect(ctx)
	if err != nil {
		return false, err
	}
	if err := acquire(ctx, m.submitting); err != nil {
		return false, canceled(opForward, err)
	}
	defer m.submitting.Release(1)
	r := tinker.ForwardBackwardRequest{ModelID: m.id, SeqID: m.next, ForwardOnly: true, Loss: loss, Data: data}
	encode := func(int64) (request, error) {
		encoded, err := forwardRequest(r, config.CompressForwardBackward, m.caller.json.Load())
		encoded.charge = m.caller.meter.chargeOfPass(r)
		return encoded, err
	}
	var ids [2]string
	for i := range ids {
		m.next = r.SeqID
		p, err := m.submit(ctx, encode)
		if err != nil {
			return false, err
		}
		ids[i] = p.id
		if _, err := fetchCharged(ctx, m.caller, p, decodeOutput(opForward, len(data))); err != nil {
			return false, err
		}
	}
	return ids[0] == ids[1], nil
}

// mayBeExecuted reports whether the server may have executed the failed request. It has not if no connection was made.
func mayBeExecuted(err error) bool {
	if wait.IsDialError(err) {
		return false
	}
	return MayHaveRun(err)
}
