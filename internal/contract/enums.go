// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

// SecretDelivery is where a server reads the secrets of its sessions.
type SecretDelivery string

// Where a server can read secrets.
const (
	DeliverHeader SecretDelivery = "Header"
	DeliverBody   SecretDelivery = "Body"
	DeliverBoth   SecretDelivery = "Both"
)

// ToolDialect is how calls of tools are written.
type ToolDialect string

// The dialects of calls. Empty, it is that of the model's format.
const (
	// HermesJSON is a JSON object with name and arguments between <tool_call> tags.
	HermesJSON ToolDialect = "HermesJSON"
	// QwenXML is <function=NAME> with a <parameter=NAME> for each argument between these tags.
	QwenXML ToolDialect = "QwenXML"
)

// TrainParseErrors is what training makes of replies that break the model's format.
type TrainParseErrors string

// What training can make of replies that break the model's format.
const (
	TrainKeep TrainParseErrors = "Keep"
	TrainMask TrainParseErrors = "Mask"
)
