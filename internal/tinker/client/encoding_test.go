// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// TestFindEncoding answers passes in protobuf and in JSON. After a refusal or an error of the server, the client makes
// one attempt in JSON; while both fail, it decides nothing. A request is repeated if its failure says nothing about the
// encoding.
func TestFindEncoding(t *testing.T) {
	accepted := ok(`{"request_id":"r"}`)
	cases := map[string]struct {
		inProtobuf, inJSON []scriptedReply
		protobuf           bool
		tries              int
	}{
		"protobuf is read":                 {[]scriptedReply{accepted}, nil, true, 1},
		"protobuf is refused":              {[]scriptedReply{status(422)}, []scriptedReply{accepted}, false, 1},
		"the media type is not supported":  {[]scriptedReply{status(415)}, []scriptedReply{accepted}, false, 1},
		"protobuf breaks the server":       {[]scriptedReply{status(500)}, []scriptedReply{accepted}, false, 1},
		"the server is busy":               {[]scriptedReply{status(429), accepted}, nil, true, 2},
		"a reply is lost":                  {[]scriptedReply{{lost: true}, accepted}, nil, true, 2},
		"both fail, then protobuf is read": {[]scriptedReply{status(503), accepted}, []scriptedReply{status(503)}, true, 2},
		"both fail, then protobuf is broken": {[]scriptedReply{status(503), status(500)},
			[]scriptedReply{status(503), accepted}, false, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{
					"forward_backward": tc.inProtobuf, "forward": tc.inJSON,
					"retrieve_future": {ok(`{"loss_fn_output_type":"scalar","loss_fn_outputs":[],"metrics":{}}`)},
				})
				got, err := w.createModel(t, ctx).FindEncoding(ctx, textData(1), tinker.Loss{Name: tinker.LossCrossEntropy})
				if err != nil || got != tc.protobuf || w.SendsJSON() == tc.protobuf {
					t.Errorf("protobuf is read: %v, %v, and the client sends JSON: %v; want protobuf: %v", got, err, w.SendsJSON(),
						tc.protobuf)
				}
				if n := len(w.requests("forward_backward")); n != tc.tries {
					t.Errorf("%d passes were sent in protobuf, want %d", n, tc.tries)
				}
			})
		})
	}
}
