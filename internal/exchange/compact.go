// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// maxCompact is the maximum number of tokens of a group that is compacted. While a group is compacted, two copies of
// it are in memory. The arrays of larger groups are large enough as they are.
const maxCompact = 1 << 19

// compact moves the tokens of a group, and the values of each token, into one array for each kind. The runtime rounds
// up the size of each array, which costs a tenth of the memory of groups whose segments have a few thousand tokens.
// The values of a group do not change.
func compact(group *rl.Group) {
	tokens := 0
	eachSegment(group, func(s *rl.Segment) { tokens += len(s.Tokens) })
	if tokens > maxCompact {
		return
	}
	move(group, func(s *rl.Segment) *[]int32 { return &s.Tokens })
	move(group, func(s *rl.Segment) *[]float32 { return &s.Logprobs })
	move(group, func(s *rl.Segment) *[]float32 { return &s.ReferenceLogprobs })
	move(group, func(s *rl.Segment) *[]float32 { return &s.TeacherLogprobs })
	var own []bool
	move(group, func(s *rl.Segment) *[]bool {
		if shared := sharedMask(s.Actions); shared != nil {
			s.Actions, own = shared, nil
			return &own
		}
		return &s.Actions
	})
}

// move moves one slice of each segment into an array. It keeps nil.
func move[T any](group *rl.Group, of func(*rl.Segment) *[]T) {
	total := 0
	eachSegment(group, func(s *rl.Segment) { total += len(*of(s)) })
	array := make([]T, 0, total)
	eachSegment(group, func(s *rl.Segment) {
		if values := of(s); *values != nil {
			first := len(array)
			array = append(array, *values...)
			*values = slices.Clip(array[first:])
		}
	})
}

func eachSegment(group *rl.Group, f func(*rl.Segment)) {
	for m := range group.Members {
		for t := range group.Members[m].Trajectories {
			segments := group.Members[m].Trajectories[t].Segments
			for i := range segments {
				f(&segments[i])
			}
		}
	}
}

// sharedLength is the maximum number of tokens of a prompt, and of a reply, for which sharedMask returns a mask.
const sharedLength = 1 << 18

// promptAndReply is the mask of a prompt and of a reply, both as long as possible.
var promptAndReply = sync.OnceValue(func() []bool {
	mask := make([]bool, 2*sharedLength)
	for i := sharedLength; i < len(mask); i++ {
		mask[i] = true
	}
	return mask
})

// sharedMask returns an equal mask that is part of an array that all groups share, if the mask is that of one prompt
// and one reply, as in most segments. Otherwise it returns nil.
func sharedMask(mask []bool) []bool {
	prompt := slices.Index(mask, true)
	if prompt < 0 {
		prompt = len(mask)
	}
	reply := len(mask) - prompt
	if len(mask) == 0 || prompt > sharedLength || reply > sharedLength || slices.Contains(mask[prompt:], false) {
		return nil
	}
	return slices.Clip(promptAndReply()[sharedLength-prompt : sharedLength+reply])
}
