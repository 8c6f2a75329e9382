// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import "github.com/tinker-operator/tinker-operator/internal/chat"

// ExplainPrefix explains the cause of a broken prefix in a sentence that begins with the cause. It returns an empty
// text for an empty cause, and the cause alone for an unknown cause, which a newer version has recorded.
func ExplainPrefix(cause string) string {
	why := ""
	switch cause {
	case "start":
		why = "the conversation begins with another message"
	case chat.RoleSystem, chat.RoleUser, chat.RoleAssistant, chat.RoleTool:
		why = "the conversation equals another one up to a message of this role"
	case "repeat":
		why = "the prompt equals, or begins, the prompt of another conversation"
	case "fork":
		why = "the request extends a reply that another request has extended"
	case "tools":
		why = "the declared tools have changed, and the tokens begin anew"
	case "format":
		why = "the model's format has rewritten earlier replies, and the tokens begin anew"
	}
	switch {
	case cause == "":
		return ""
	case why == "":
		return "prefix broken: " + cause
	}
	return "prefix broken: " + cause + ", " + why
}
