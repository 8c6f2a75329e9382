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
		Tested: "JAX, CPU, on 2026-11-22: `make conformance-skyrl`, and 46 recorded calls; on each change the survival " +
			"suite, at a dialect of tinkersim that is compared with them",
		Known: "a run with a killed learner completes with each step once, [restricted](#skyrl-030)",
	},
	{
		Name: NameSkyRL, Version: "0.4.0", SDK: "0.25", features: "skyrl-0.4.0.txt",
		Tested: "JAX, CPU, Python 3.12, on 2026-11-27 and 2026-11-28: every feature, three steps of a learner that died " +
			"while it saved and while it loaded a state, and six steps on a cluster, the learner killed after the third",
		Known: "the steps complete, [restricted](#skyrl-040)",
	},
}

// untested are the servers that are known only from publications.
var untested = []Server{
	{
		Name: "hosted Tinker", SDK: "0.38.0",
		Known: "run the command above with your key. The client follows the published API and SDK, without " +
			"stable_reinforce, which has no published formula",
	},
	{
		Name: "OpenRL", SDK: "0.22.7",
		Known: "by its source (bfc0f09, April 2026) and compatibility file (August): 41 of 82 methods, and no durable " +
			"checkpoints, without which a run cannot resume",
	},
	{
		Name: "TuFT", SDK: "0.32",
		Known: "by its source (102eefd, 2026-08-20): a compatibility matrix; the losses ppo, cispo, importance_sampling " +
			"and dro",
	},
	{
		Name: "Miles", Version: "0.2.0", SDK: "0.26.2",
		Known: "by its roadmap (radixark/miles, issue 3284, 2026-09-15): states, `sampler_snapshot` and `repeats`, but no " +
			"TTLs and user metadata of checkpoints, seeds of adapters, `train_*` flags and calls that publish or fetch " +
			"checkpoints. A run resumes from its rows",
	},
	{
		Name: "VeRL-Tinker", SDK: "0.19.0",
		Known: "by the source of verl-recipe (48ea0a7, 2026-08-05): JSON, and one client at a time, but a run has several",
	},
	{
		Name: "TCRL of Tencent", SDK: "0.12.0",
		Known: "by a survey of November 2026: its SDK sends JSON",
	},
	{
		Name: "tinker-cloud",
		Known: "by its README (GavinZhu-GMI/tinker-cloud): Ray actors of Miles or slime, with passes, optimizer steps, " +
			"samples, checkpoints and optional keys",
	},
	{
		Name:  "Twinkle",
		Known: "by its source (1a1d884, 2026-07-22): it needs a patched SDK; its wire format may differ",
	},
	{
		Name: "Baseten Loops",
		Known: "by its documentation: a package baseten-loops-tinker replaces tinker; nothing says whether its servers " +
			"read this client's requests",
	},
	{
		Name:  "Modal Spindle, Fireworks, MinT",
		Known: "they need accounts; their own pages were read in part",
	},
}
