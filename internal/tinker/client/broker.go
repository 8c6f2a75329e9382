// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// brokerCategories has the categories of the answers that a broker makes itself. A call waits for everything that is
// repaired at the broker. This includes a refused token of the run: the manager makes the run known to the broker,
// and the run itself cannot. The status decides the category of other codes.
var brokerCategories = map[problem.Code]tinker.Category{
	problem.EndpointKeyRefused:    tinker.CategoryServer,
	problem.EndpointBudgetReached: tinker.CategoryPayment,
	problem.EndpointUnreachable:   tinker.CategoryUnreachable,
	problem.EndpointFailing:       tinker.CategoryServer,
	problem.TokenRefused:          tinker.CategoryServer,
	problem.BrokerDraining:        tinker.CategoryServer,
	problem.RecordsBlocked:        tinker.CategoryServer,
	problem.ObjectNotOwned:        tinker.CategoryNotFound,
	problem.RouteRefused:          tinker.CategoryUnsupported,
	problem.RequestInvalid:        tinker.CategoryUser,
	problem.ModelRefused:          tinker.CategoryUser,
	problem.CheckRefused:          tinker.CategoryUser,
	problem.RequestTooLarge:       tinker.CategoryTooLarge,

	problem.EndpointNotTinker:          tinker.CategoryUnreachable,
	problem.EndpointAuthorityUnknown:   tinker.CategoryUnreachable,
	problem.EndpointCertificateExpired: tinker.CategoryUnreachable,
	problem.EndpointHostMismatch:       tinker.CategoryUnreachable,
	problem.EndpointCertificateInvalid: tinker.CategoryUnreachable,
	problem.EndpointWithoutTLS:         tinker.CategoryUnreachable,
	problem.EndpointRefusesTLS:         tinker.CategoryUnreachable,
}

// classify completes the error of an answer that a broker made itself. Such an answer says whether the server may
// have executed the request.
func (e *Error) classify(r response) {
	code := r.header.Get(tinker.HeaderBrokerCode)
	if code == "" {
		return
	}
	e.Code = problem.Code(code).Bounded()
	if category, known := brokerCategories[e.Code]; known {
		e.Category = category
	}
	e.MayHaveRun = r.header.Get(tinker.HeaderBrokerForwarded) != "false"
}

// FailsOf returns the code of a call that failed with err: the code of the error's category, unless a broker or the TLS
// connection gave a more specific one.
func FailsOf(err error) problem.Code {
	if e, ok := errors.AsType[*Error](err); ok && e.Code != "" && (e.Category == tinker.CategoryNotTinker ||
		e.Code == problem.ModelRefused || e.Code == problem.CheckRefused) {
		return e.Code
	}
	return CodesOf(CategoryFrom(err)).Fails
}
