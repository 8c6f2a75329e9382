// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import "github.com/tinker-operator/tinker-operator/test/model/credentials"

// credentialsScenarios explores who may fence a learner, with all checks and without one of them.
func credentialsScenarios() []Scenario {
	of := func(name, note string, change func(*credentials.Config)) Scenario {
		config := credentials.Config{
			CheckSignature: true, SignAttempt: true, SignRun: true, KeyPerRun: true, KeyAtLearnersOnly: true,
			ManagerToken: true, CheckToken: true, CheckCertificate: true, PassOn: true, Crashes: 1, SecondLearners: 2,
		}
		change(&config)
		return Scenario{Name: "credentials/" + name, Note: note, Run: exploring(credentials.New(config))}
	}
	return []Scenario{
		of("protocol", "", func(*credentials.Config) {}),
		of("protocol unreachable", "the manager does not reach a superseded learner",
			func(c *credentials.Config) { c.Unreachable = true }),
		of("minus signature", "a report fences without a signature",
			func(c *credentials.Config) { c.CheckSignature = false }),
		of("minus attempt", "the signature does not name the attempt", func(c *credentials.Config) { c.SignAttempt = false }),
		of("minus run", "the signature does not name the run, whose key is its own",
			func(c *credentials.Config) { c.SignRun = false }),
		of("minus key", "runs share a key, and the signature names the run",
			func(c *credentials.Config) { c.KeyPerRun = false }),
		of("minus run and key", "runs share a key, and the signature does not name the run",
			func(c *credentials.Config) { c.SignRun, c.KeyPerRun = false, false }),
		of("private-key", "workers have the private key", func(c *credentials.Config) { c.KeyAtLearnersOnly = false }),
		of("one-token", "the workers' token is good for a heartbeat", func(c *credentials.Config) { c.ManagerToken = false }),
		of("minus token", "the exchange takes any token", func(c *credentials.Config) { c.CheckToken = false }),
		of("minus certificate", "workers believe whoever answers",
			func(c *credentials.Config) { c.CheckCertificate = false }),
		of("minus pass-on unreachable", "workers report attempts without the signature",
			func(c *credentials.Config) { c.PassOn, c.Unreachable = false, true }),
	}
}
