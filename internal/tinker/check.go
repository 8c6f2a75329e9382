// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

// PathCheck is the path of a request that the broker of a TinkerEndpoint answers itself, below /api/v1: POST with a
// CheckRequest.
const PathCheck = "broker/check"

// CheckRequest asks a broker which features the server supports. The broker checks once for all runs.
type CheckRequest struct {
	BaseModel string     `json:"base_model"`
	Lora      LoraConfig `json:"lora_config"`
	// Features are names of package capability. The broker leaves out those that it does not know.
	Features []string `json:"features"`
}

// CheckResponse has the findings of a broker, including findings about features that the request does not name.
type CheckResponse struct {
	// Pending says that the check goes on, and that the request is to be repeated at once. The other fields are then
	// empty.
	Pending bool `json:"pending"`
	// Endpoint is the name of the TinkerEndpoint.
	Endpoint    string   `json:"endpoint,omitempty"`
	Supported   []string `json:"supported,omitempty"`
	Ignored     []string `json:"ignored,omitempty"`
	Unsupported []string `json:"unsupported,omitempty"`
	// CheckedAt is when the oldest of the findings was made, RFC 3339.
	CheckedAt string `json:"checked_at,omitempty"`
	// ClientVersion is the version of the broker, whose client made the check.
	ClientVersion string `json:"client_version,omitempty"`
}
