// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

// TypeOf returns the type of a field of a TrainingRun in its schema, such as integer or number; "" if the path leads
// to no field. Set returns an error for such a path.
func TypeOf(path string) string {
	root, err := runSchema()
	if err != nil {
		return ""
	}
	steps, err := split(path)
	if err != nil {
		return ""
	}
	at := root
	for _, next := range steps {
		child, ok := at.Properties[next.name]
		switch {
		case ok && !next.entry:
			at = &child
		case at.Items != nil && next.entry:
			at = at.Items
		case at.AdditionalProperties != nil && at.AdditionalProperties.Structural != nil:
			at = at.AdditionalProperties.Structural
		default:
			return ""
		}
	}
	return at.Type
}
