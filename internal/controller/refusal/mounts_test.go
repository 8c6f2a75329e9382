// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNewestMount(t *testing.T) {
	begin := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	event := func(minute int, reason, note string) eventsv1.Event {
		return eventsv1.Event{Reason: reason, Note: note,
			DeprecatedLastTimestamp: metav1.NewTime(begin.Add(time.Duration(minute) * time.Minute))}
	}
	const missing = `MountVolume.SetUp failed for volume "ca" : configmap "misspelt" not found`
	const vague = `Unable to attach or mount volumes: unmounted volumes=[ca], unattached volumes=[]: timed out waiting for the condition`
	for name, tc := range map[string]struct {
		events []eventsv1.Event
		want   string
	}{
		"no events":                   {nil, ""},
		"events about something else": {[]eventsv1.Event{event(1, "Pulling", "Pulling image")}, ""},
		"a ConfigMap is missing": {[]eventsv1.Event{event(1, "FailedMount", missing),
			event(2, "Pulling", "Pulling image")}, missing},
		"the newest counts": {[]eventsv1.Event{event(2, "FailedMount", missing),
			event(1, "FailedAttachVolume", "Multi-Attach error")}, missing},
		"what is vague does not": {[]eventsv1.Event{event(1, "FailedMount", missing),
			event(2, "FailedMount", vague)}, missing},
		"nothing but what is vague": {[]eventsv1.Event{event(1, "FailedMount", vague)}, vague},
		"a clear event after a vague one": {[]eventsv1.Event{event(1, "FailedMount", vague),
			event(2, "FailedMount", "(combined from similar events): "+missing)}, missing},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newestMount(tc.events); got != tc.want {
				t.Errorf("newestMount = %q, want %q", got, tc.want)
			}
		})
	}
}
