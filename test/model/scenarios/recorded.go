// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import "github.com/tinker-operator/tinker-operator/test/model/engine"

// recorded holds the invariants that each scenario breaks; a scenario that is not here keeps them all.
// It was printed with -big -record and read line by line.
var recorded = map[string][]engine.Code{
	"first-version/corrupt":           {1 /* I1 corrupt state resumed from */},
	"first-version/row":               {4 /* I3 a row of the final lineage is missing */},
	"first-version/late-save":         {8 /* I5 a resume leaves the lineage that was covered */},
	"first-version/superseded-used":   {6 /* I5 a superseded learner's save is resumed from */},
	"first-version/superseded-covers": {5 /* I4 a group dropped as covered is needed again */},
	"first-version/tie":               {10 /* I9 two different checkpoints tie for newest */},
	"first-version/session-key":       {2 /* I1 final weights are not the lineage's */},
	"first-version/foreign":           {9 /* I9 another run's checkpoint is resumed from */},
	"first-version/expiry":            {7 /* I5 a checkpoint is deleted that the next resume needs */},
	"first-version/lag-sampler":       {engine.Stuck},
	"first-version/lag-parent":        {engine.Stuck},
	"first-version/lag-refill":        {3 /* I2 final lineage depends on the schedule */},
	"minus/save-clean":                {1 /* I1 corrupt state resumed from */},
	"minus/row-ahead":                 {4 /* I3 a row of the final lineage is missing */},
	"minus/sampler-clean": {1, /* I1 corrupt state resumed from */
		2 /* I1 final weights are not the lineage's */},
	"minus/drain-clean":                  {1 /* I1 corrupt state resumed from */},
	"minus/claim":                        {5 /* I4 a group dropped as covered is needed again */},
	"minus/opening":                      {6 /* I5 a superseded learner's save is resumed from */},
	"minus/claim-and-opening":            {6 /* I5 a superseded learner's save is resumed from */},
	"minus/order":                        {8 /* I5 a resume leaves the lineage that was covered */},
	"minus/window":                       {engine.Stuck},
	"minus/parents":                      {engine.Stuck},
	"minus/s0":                           {engine.Stuck},
	"minus/run-filter":                   {9 /* I9 another run's checkpoint is resumed from */},
	"minus/eval-keep":                    {engine.Stuck},
	"minus/session-key":                  {2 /* I1 final weights are not the lineage's */},
	"refill/any/tombstone1":              {3 /* I2 final lineage depends on the schedule */},
	"refill/discard/tombstone1":          {13 /* cost: a finished group is discarded */},
	"alternative/by-lineage/fail+expiry": {1 /* I1 corrupt state resumed from */},
	"alternative/by-lineage/second-learner check-first":    {5 /* I4 a group dropped as covered is needed again */},
	"alternative/by-lineage/name-order":                    {10 /* I9 two different checkpoints tie for newest */},
	"alternative/by-checkpoint/second-learner":             {6 /* I5 a superseded learner's save is resumed from */},
	"alternative/by-checkpoint/second-learner check-first": {5 /* I4 a group dropped as covered is needed again */},
	"no-store/second-learner":                              {5 /* I4 a group dropped as covered is needed again */},
	"no-store/lag1 second-learner sampler-expiry":          {engine.Stuck},
	"no-store/lag1 second-learner sampler-expiry reopen":   {engine.Stuck},
	"expiry/spare0":                               {7 /* I5 a checkpoint is deleted that the next resume needs */},
	"expiry/spare1 rebuys":                        {5 /* I4 a group dropped as covered is needed again */},
	"manager-record/covered":                      {8 /* I5 a resume leaves the lineage that was covered */},
	"base-record/second-learner2+fail by attempt": {6 /* I5 a superseded learner's save is resumed from */},
	"wire/piped": {2, /* I1 a state is saved that holds a partial gradient */
		3 /* I1 a step is reported whose update was not applied */},
	"wire/await+piped": {3 /* I1 a step is reported whose update was not applied */},
	"wire/no-dedupe":   {1 /* I1 an update or a gradient is applied twice */},
	"wire/new-number":  {1 /* I1 an update or a gradient is applied twice */},
	"wire/reuse-number": {2, /* I1 a state is saved that holds a partial gradient */
		4 /* I1 a reply of another op is taken for this one's */},
	"wire/continue": {2 /* I1 a state is saved that holds a partial gradient */},
	"wire/resurrect": {2, /* I1 a state is saved that holds a partial gradient */
		3 /* I1 a step is reported whose update was not applied */},
	"manager/first-version":      {1 /* I7 a second learner starts though nothing was lost */, engine.Stuck},
	"manager/no-lock late-write": {3 /* I7 the recorded attempt goes back */},
	"manager/minus hold": {1, /* I7 a second learner starts though nothing was lost */
		5 /* a Job that another controller suspended is replaced */},
	"manager/recreate":                      {2 /* I7 an attempt number is used by two Jobs */},
	"sampling/first-version same-id":        {engine.Stuck},
	"sampling/first-version try":            {1 /* I2 the group's samples depend on what was lost */},
	"sampling/try-on-crash":                 {1 /* I2 the group's samples depend on what was lost */},
	"sampling/first-version session":        {engine.Stuck},
	"wire/reuse-request-id":                 {3 /* I1 a step is reported whose update was not applied */},
	"capacity/1 of 2":                       {engine.Stuck},
	"capacity/guess lag1":                   {engine.Stuck},
	"capacity/stale capacity1":              {engine.Stuck},
	"credentials/minus signature":           {1 /* I10 a learner is fenced though no later attempt has begun */},
	"credentials/minus attempt":             {1 /* I10 a learner is fenced though no later attempt has begun */},
	"credentials/minus run and key":         {1 /* I10 a learner is fenced though no later attempt has begun */},
	"credentials/private-key":               {1 /* I10 a learner is fenced though no later attempt has begun */},
	"credentials/one-token":                 {1 /* I10 a learner is fenced though no later attempt has begun */},
	"credentials/minus token":               {2 /* I10 a worker of another run is admitted */},
	"credentials/minus certificate":         {engine.Stuck},
	"credentials/minus pass-on unreachable": {engine.Stuck},
	"adapter/minus acknowledge": {
		1 /* I1 a version is trained from, or saved with, the weights of another one */},
	"adapter/minus report": {1 /* I1 a version is trained from, or saved with, the weights of another one */},
	"adapter/by-index":     {1 /* I1 a version is trained from, or saved with, the weights of another one */},
	"suspects/two deaths":  {1 /* I2 a member is left out that ends no process */},
	"suspects/minus permits undisturbed": {1, /* I2 a member is left out that ends no process */
		2 /* I6 the poison ends processes without end */},
	"suspects/minus suspects":     {2 /* I6 the poison ends processes without end */},
	"suspects/minus permits":      {1 /* I2 a member is left out that ends no process */},
	"suspects/minus alone":        {1 /* I2 a member is left out that ends no process */},
	"suspects/minus second death": {1 /* I2 a member is left out that ends no process */},
}
