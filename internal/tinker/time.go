// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/json"
	"fmt"
	"time"
)

// wireTime is a time in listings. Some servers leave out its zone, which then is UTC.
type wireTime time.Time

// UnmarshalJSON accepts RFC 3339, with or without a zone, and null.
func (t *wireTime) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil || text == nil {
		return err
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999",
		"2006-01-02 15:04:05.999999999Z07:00"} {
		if parsed, err := time.Parse(layout, *text); err == nil {
			*t = wireTime(parsed)
			return nil
		}
	}
	return fmt.Errorf("%q is not a time", *text)
}

// UnmarshalJSON accepts times without a zone.
func (r *TrainingRun) UnmarshalJSON(data []byte) error {
	type plain TrainingRun
	wire := struct {
		*plain
		LastRequestTime wireTime `json:"last_request_time"`
	}{plain: &plain{}}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*r = TrainingRun(*wire.plain)
	r.LastRequestTime = time.Time(wire.LastRequestTime)
	return nil
}

// UnmarshalJSON accepts times without a zone.
func (c *Checkpoint) UnmarshalJSON(data []byte) error {
	type plain Checkpoint
	wire := struct {
		*plain
		Time      wireTime  `json:"time"`
		ExpiresAt *wireTime `json:"expires_at"`
	}{plain: &plain{}}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*c = Checkpoint(*wire.plain)
	c.Time, c.ExpiresAt = time.Time(wire.Time), (*time.Time)(wire.ExpiresAt)
	return nil
}
