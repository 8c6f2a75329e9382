// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package servers

// The names of tested servers.
const (
	NameTinkersim = "tinkersim"
	NameSkyRL     = "SkyRL"
)

// tested are the servers whose every feature was tried.
var tested = []Server{
	{
		Name: NameTinkersim, SDK: "0.25.0 and 0.38.0", complete: true,
		Tested: "`make conformance`, part of `make test`, on each change; `make conformance-cookbook` on demand",
		Known:  "every feature works",
	},
	{
		Name: NameSkyRL, Version: "0.3.0", SDK: "0.24.1", features: "skyrl-0.3.0.txt",
		Tested: "JAX, CPU: 46 recorded calls on 2026-11-22; `make conformance-skyrl` from a clean clone on 2026-11-22: " +
			"every feature, a TrainingRun with a killed learner, and one whose reward rises. On each change the " +
			"survival suite, at a dialect of tinkersim that is compared with the recorded calls and features",
		Known: "the run completes with each step once, with the restrictions below; pass@1 rises from 0.125 to 1 in 24 " +
			"steps",
	},
	{
		Name: NameSkyRL, Version: "0.4.0", SDK: "0.25", features: "skyrl-0.4.0.txt",
		Tested: "JAX, CPU, Python 3.12, on 2026-11-27: every feature with our own client, and three steps of a learner " +
			"that died while the state of a step was saved and while it loaded one",
		Known: "the run completes, and the final weights have three steps; no TrainingRun of a cluster was trained at it. " +
			"[Differences from 0.3.0](#skyrl-040)",
	},
}

// untested are the servers of which only publications are known.
var untested = []Server{
	{
		Name: "hosted Tinker", SDK: "0.38.0",
		Known: "run the command above with your key. The client is written against the published API and SDK; " +
			"stable_reinforce, which has no published formula, is not offered",
	},
	{
		Name: "OpenRL", SDK: "0.22.7",
		Known: "by its source of April 2026 (bfc0f09) and its compatibility file of August 2026: 41 of 82 methods, and " +
			"no durable checkpoints, without which a run cannot resume",
	},
	{
		Name: "TuFT", SDK: "0.32",
		Known: "by its source of 2026-08-20 (102eefd): it publishes a compatibility matrix, and names the losses ppo, " +
			"cispo, importance_sampling and dro",
	},
	{
		Name: "Miles", Version: "0.2.0", SDK: "0.26.2",
		Known: "by its roadmap of 2026-09-15 (radixark/miles, issue 3284): it has states, snapshots to sample from and " +
			"repeats that are recognised, but no TTLs and user metadata of checkpoints, seeds of adapters, `train_*` " +
			"flags and calls that publish or fetch checkpoints. Without metadata a run resumes from its rows",
	},
	{
		Name: "VeRL-Tinker", SDK: "0.19.0",
		Known: "by the source of verl-recipe of 2026-08-05 (48ea0a7): its SDK sends JSON, and it serves one client at a " +
			"time, but a run has several",
	},
	{
		Name: "TCRL of Tencent", SDK: "0.12.0",
		Known: "by a survey of November 2026: it pins this SDK, which sends JSON",
	},
	{
		Name: "tinker-cloud",
		Known: "by its README (GavinZhu-GMI/tinker-cloud): an HTTP server before Ray actors of Miles or slime, with " +
			"passes, optimizer steps, samples, checkpoints and optional keys",
	},
	{
		Name: "Twinkle",
		Known: "by its source of 2026-07-22 (1a1d884): it needs a patched SDK, so that its wire format may differ from " +
			"this client's",
	},
	{
		Name: "Baseten Loops",
		Known: "by its documentation: the package baseten-loops-tinker replaces the Python package tinker; whether its " +
			"servers read this client's requests is not documented",
	},
	{
		Name:  "Modal Spindle, Fireworks, MinT",
		Known: "they need accounts; their own pages were read in part",
	},
}
