// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// These codes of failed calls stay within a program, which handles them itself and does not show them to people.
const (
	// Canceled is the code of a call that its caller gave up, and of every error that is not from a call.
	Canceled problem.Code = ""
	// Outage means that the same call may succeed later.
	Outage problem.Code = "Outage"
	// Refused means that the endpoint does not accept the input. The operation names the refused input.
	Refused problem.Code = "Refused"
	// NotFound means that the object of the call does not exist. The operation says which object.
	NotFound problem.Code = "NotFound"
	// Unsupported means that the endpoint does not have the call.
	Unsupported problem.Code = "Unsupported"
)

// Codes are the codes of a category.
type Codes struct {
	// Waits is the problem that people are told while the client repeats a call.
	Waits problem.Code
	// Fails is the code of a call that has failed.
	Fails problem.Code
}

// codes has the codes of every category.
var codes = map[tinker.Category]Codes{
	"":                          {problem.EndpointFailing, Canceled},
	tinker.CategoryCanceled:     {problem.EndpointFailing, Canceled},
	tinker.CategoryThrottled:    {problem.Throttled, Outage},
	tinker.CategoryPaused:       {problem.PausedRateLimit, Outage},
	tinker.CategoryPayment:      {problem.PaymentRequired, Outage},
	tinker.CategoryUnreachable:  {problem.EndpointUnreachable, Outage},
	tinker.CategoryServer:       {problem.EndpointFailing, Outage},
	tinker.CategoryUnknown:      {problem.EndpointFailing, Outage},
	tinker.CategoryTimeout:      {problem.EndpointFailing, Outage},
	tinker.CategoryConflict:     {problem.EndpointFailing, Outage},
	tinker.CategoryExists:       {problem.EndpointFailing, Outage},
	tinker.CategoryFutureLost:   {problem.EndpointFailing, Outage},
	tinker.CategoryProtocol:     {problem.EndpointFailing, Outage},
	tinker.CategoryUser:         {problem.EndpointFailing, Refused},
	tinker.CategoryTooLarge:     {problem.RequestTooLarge, Refused},
	tinker.CategoryNotFound:     {problem.EndpointFailing, NotFound},
	tinker.CategoryUnsupported:  {problem.EndpointFailing, Unsupported},
	tinker.CategoryUnauthorized: {problem.EndpointFailing, problem.KeyRefused},
	tinker.CategoryNotTinker:    {problem.EndpointFailing, problem.EndpointNotTinker},
}

// CodesOf returns the codes of a category. A category that this build does not know is an outage.
func CodesOf(category tinker.Category) Codes {
	if known, ok := codes[category]; ok {
		return known
	}
	return Codes{problem.EndpointFailing, Outage}
}

// codeOf returns the problem that an event is about.
func codeOf(event Event) problem.Code {
	if problem.IsKnown(event.Code) {
		return event.Code
	}
	if event.Category == tinker.CategoryPaused && event.QueueState == tinker.QueuePausedCapacity {
		return problem.PausedCapacity
	}
	return CodesOf(event.Category).Waits
}
