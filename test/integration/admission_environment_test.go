// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

var _ = Describe("A bad RewardEnvironment", func() {
	DescribeTable("is refused, with the field and the repair",
		refuses(smallestEnvironment),
		Entry("no reward", "spec: {reward: null}", "spec", "dataset needs reward"),
		Entry("no dataset", "spec: {dataset: null}", "spec", "give dataset"),
		Entry("empty dataset", "spec: {dataset: {arithmetic: null}}", "spec.dataset", "arithmetic"),
		Entry("two datasets", "spec: {dataset: {countdown: {}}}", "spec.dataset",
			"give exactly one of arithmetic, countdown, huggingFace and jsonl"),
		Entry("jsonl without splits", "spec: {dataset: {arithmetic: null, jsonl: {configMapRef: {name: a}}}}", "spec.dataset",
			"jsonl needs splits"),
		Entry("jsonl in two places", "spec: {dataset: {arithmetic: null, jsonl: {claimName: a, url: 'https://h/f'}, "+
			"splits: [{name: train}]}}", "spec.dataset.jsonl", "give exactly one of claimName, configMapRef and url"),
		Entry("a URL without a digest", "spec: {dataset: {arithmetic: null, jsonl: {url: 'https://h/f'}, splits: [{name: "+
			"train}]}}", "spec.dataset", "need sha256"),
		Entry("a URL of files", "spec: {dataset: {arithmetic: null, jsonl: {url: 'file:///f'}, splits: [{name: train, "+
			"sha256: '"+strings.Repeat("a", 64)+"'}]}}", "spec.dataset.jsonl.url", "http:// or https://"),
		Entry("a digest in capitals", "spec: {dataset: {arithmetic: null, jsonl: {claimName: a}, splits: [{name: train, "+
			"sha256: ABC}]}}", "spec.dataset.splits[0].sha256", "64 hexadecimal digits"),
		Entry("a digest of generated tasks", "spec: {dataset: {splits: [{name: train, sha256: '"+strings.Repeat("a", 64)+
			"'}]}}", "spec.dataset", "sha256 is for files of jsonl"),
		Entry("two digests of one source", "spec: {dataset: {arithmetic: null, jsonl: {claimName: a}, splits: [{name: a, "+
			"source: f, sha256: '"+strings.Repeat("a", 64)+"'}, {name: b, source: f, sha256: '"+strings.Repeat("b", 64)+"'}]}}",
			"spec.dataset", "two values of sha256"),
		Entry("a key of a ConfigMap", "spec: {dataset: {arithmetic: null, jsonl: {configMapRef: {name: a}}, splits: "+
			"[{name: train, source: a/b}]}}", "spec.dataset", "must be a key of the ConfigMap"),
		Entry("a path out of a volume", "spec: {dataset: {arithmetic: null, jsonl: {claimName: a}, splits: [{name: train, "+
			"source: a/../../b}]}}", "spec.dataset.splits[0].source", "without '.' and '..'"),
		Entry("a split of none", "spec: {dataset: {splits: [{name: train, of: all}]}}", "spec.dataset",
			"must name another split of this list"),
		Entry("a split with two bases", "spec: {dataset: {splits: [{name: a}, {name: b, of: a, source: train}]}}",
			"spec.dataset.splits[1]", "not both"),
		Entry("a split of nothing", "spec: {dataset: {splits: [{name: a, take: 0}]}}", "spec.dataset.splits[0].take",
			"greater than or equal to 1"),
		Entry("a negative skip", "spec: {dataset: {splits: [{name: a, skip: -1}]}}", "spec.dataset.splits[0].skip",
			"greater than or equal to 0"),
		Entry("a negative seed", "spec: {dataset: {splits: [{name: a, shuffleSeed: -1}]}}",
			"spec.dataset.splits[0].shuffleSeed", "greater than or equal to 0"),
		Entry("a repository's name", "spec: {dataset: {arithmetic: null, huggingFace: {repository: 'a/b/c'}}}",
			"spec.dataset.huggingFace.repository", "OWNER/NAME"),
		Entry("a hub without a scheme", "spec: {dataset: {arithmetic: null, huggingFace: {repository: a/b, baseURL: hub}}}",
			"spec.dataset.huggingFace.baseURL", "http:// or https://"),
		Entry("numbers in the wrong order", "spec: {dataset: {arithmetic: null, countdown: {minNumbers: 4, maxNumbers: 3}}}",
			"spec.dataset.countdown", "minNumbers must be at most maxNumbers"),
		Entry("an example without a reply", "spec: {dataset: {examples: [{prompt: a}]}}", "spec.dataset.examples[0].reply",
			"Required"),
		Entry("a column without a name", "spec: {dataset: {fields: {answer: ''}}}", "spec.dataset.fields",
			"columns 1 to 256"),
		Entry("empty reward", "spec: {reward: {exactMatch: null}}", "spec.reward",
			"give exactly one of exactMatch, regex, jsonSchema"),
		Entry("two rewards", "spec: {reward: {math: {}}}", "spec.reward",
			"give exactly one of exactMatch, regex, jsonSchema"),
		Entry("a reward beside a sum", "spec: {reward: {weighted: [{name: a, weight: 1, math: {}}]}}", "spec.reward",
			"and weighted"),
		Entry("a part of replies", "spec: {reward: {exactMatch: {part: Half}}}", "spec.reward.exactMatch.part",
			"supported values"),
		Entry("integers that are normalized", "spec: {reward: {exactMatch: {normalize: [Case]}}}", "spec.reward.exactMatch",
			"normalize needs part Text"),
		Entry("a normalization", "spec: {reward: {exactMatch: {part: Text, normalize: [Verbs]}}}",
			"spec.reward.exactMatch.normalize", "supported values"),
		Entry("a regular expression", "spec: {reward: {exactMatch: null, regex: {pattern: 'a(b'}}}",
			"spec.reward.regex.pattern", "missing closing", "correct the regular expression"),
		Entry("no regular expression", "spec: {reward: {exactMatch: null, regex: {}}}", "spec.reward.regex.pattern",
			"Required"),
		Entry("a schema that is a text", "spec: {reward: {exactMatch: null, jsonSchema: {schema: object}}}",
			"spec.reward.jsonSchema.schema", "must be of type object"),
		Entry("an empty expression", "spec: {reward: {exactMatch: null, expression: ''}}", "spec.reward.expression",
			"at least 1"),
		Entry("an expression beyond bounds", "spec: {reward: {exactMatch: null, expression: '"+strings.Repeat("a", 4097)+
			"'}}", "spec.reward.expression", "4096"),
		Entry("a rubric without a judge", "spec: {reward: {exactMatch: null, rubric: {}}}", "spec.reward.rubric.judge",
			"Required"),
		Entry("a judge without an API", "spec: {reward: {exactMatch: null, rubric: {judge: {}}}}", "spec.reward.rubric.judge",
			"give exactly one of tinker and openAI"),
		Entry("two judges", "spec: {reward: {exactMatch: null, rubric: {judge: {tinker: {model: m}, openAI: {baseURL: "+
			"'http://a', model: m}}}}}", "spec.reward.rubric.judge", "give exactly one of tinker and openAI"),
		Entry("a judge of nothing", "spec: {reward: {exactMatch: null, rubric: {judge: {tinker: {renderer: qwen3}}}}}",
			"spec.reward.rubric.judge.tinker", "give exactly one of model and checkpoint"),
		Entry("a judge of a state", "spec: {reward: {exactMatch: null, rubric: {judge: {tinker: {checkpoint: "+
			"'tinker://a/weights/b'}}}}}", "spec.reward.rubric.judge.tinker.checkpoint", "must be sampler weights"),
		Entry("a judge whose baseURL is not a URL",
			"spec: {reward: {exactMatch: null, rubric: {judge: {openAI: {baseURL: 'api.openai.com', model: m}}}}}",
			"spec.reward.rubric.judge.openAI.baseURL", "must begin with http"),
		Entry("a judge's key without its name", "spec: {reward: {exactMatch: null, rubric: {judge: {openAI: {baseURL: "+
			"'http://a', model: m, apiKeySecretKeyRef: {key: k}}}}}}", "spec.reward.rubric.judge.openAI.apiKeySecretKeyRef.name",
			"Required"),
		Entry("a scoring", "spec: {reward: {exactMatch: null, rubric: {scoring: AllAtOnce, judge: {tinker: {model: m}}}}}",
			"spec.reward.rubric.scoring", "PassRate", "PerRubric", "Score"),
		Entry("a coverage above 1", "spec: {reward: {exactMatch: null, rubric: {minCoverage: 1.5, judge: {tinker: "+
			"{model: m}}}}}", "spec.reward.rubric.minCoverage", "less than or equal to 1"),
		Entry("a judge without tokens", "spec: {reward: {exactMatch: null, rubric: {judge: {tinker: {model: m}, sampling: "+
			"{maxTokens: 0}}}}}", "spec.reward.rubric.judge.sampling.maxTokens", "greater than or equal to 1"),
		Entry("a judge without time", "spec: {reward: {exactMatch: null, rubric: {judge: {tinker: {model: m}, "+
			"timeoutSeconds: 0}}}}", "spec.reward.rubric.judge.timeoutSeconds", "greater than or equal to 1"),
		Entry("a rubric beside another reward", "spec: {reward: {rubric: {judge: {tinker: {model: m}}}}}", "spec.reward",
			"rubric", "weighted"),
		Entry("two judges in a sum", "spec: {reward: {exactMatch: null, weighted: [{name: a, weight: 1, rubric: "+
			"{judge: {}}}]}}", "spec.reward.weighted[0].rubric.judge", "give exactly one of tinker and openAI"),
		Entry("a sum of nothing", "spec: {reward: {exactMatch: null, weighted: []}}", "spec.reward.weighted", "at least 1"),
		Entry("a sum without a reward", "spec: {reward: {exactMatch: null, weighted: [{name: a, weight: 1}]}}",
			"spec.reward.weighted[0]", "beside name and weight"),
		Entry("a sum with a name twice", "spec: {reward: {exactMatch: null, weighted: [{name: a, weight: 1, math: {}}, "+
			"{name: a, weight: 1, gsm8k: {}}]}}", "spec.reward.weighted[1]", "Duplicate"),
		Entry("a sum of metrics alone", "spec: {reward: {exactMatch: null, weighted: [{name: a, weight: 0, math: {}}]}}",
			"spec.reward.weighted", "give at least one entry another weight"),
		Entry("a sum with a name in capitals", "spec: {reward: {exactMatch: null, weighted: [{name: A, weight: 1, "+
			"math: {}}]}}", "spec.reward.weighted[0].name", "metrics are named after it"),
		Entry("a regular expression in a sum", "spec: {reward: {exactMatch: null, weighted: [{name: a, weight: 1, regex: "+
			"{pattern: '*'}}]}}", "spec.reward.weighted[0].regex.pattern", "missing argument to repetition"),
		Entry("a server beside a data set", "spec: {ors: {url: 'http://sums'}}", "spec",
			"give exactly one of dataset and ors"),
		Entry("a reward of a server", "spec: {dataset: null, ors: {url: 'http://sums'}}", "spec", "has its own rewards"),
		Entry("solvers on a server", "spec: {dataset: null, reward: null, ors: {url: 'http://sums'}, interaction: "+
			"{solverJudge: {}}}", "spec", "episodes of an ors server are tool use"),
		Entry("a server of nothing", "spec: {dataset: null, reward: null, ors: {}}", "spec.ors", "give exactly one of name",
			"url", "server"),
		Entry("a server with an odd URL", "spec: {dataset: null, reward: null, ors: {url: 'sums:8080'}}", "spec.ors.url",
			"must begin with http"),
		Entry("a hosted environment without its owner", "spec: {dataset: null, reward: null, ors: {name: WhoDunIt}}",
			"spec.ors.name", "OWNER/NAME"),
		Entry("a hosted environment twice named", "spec: {dataset: null, reward: null, ors: {name: A/B, environment: c}}",
			"spec.ors", "OWNER/NAME@VARIANT"),
		Entry("a hosting service of a URL",
			"spec: {dataset: null, reward: null, ors: {url: 'http://a', baseURL: 'http://b'}}", "spec.ors",
			"give url for a server of your own"),
		Entry("a server's claim of resources that no pod has",
			"spec: {dataset: null, reward: null, ors: {server: {image: a, resources: {claims: [{name: gpu}]}}}}",
			"spec.ors.server.resources", "remove it, and request devices by limits"),
		Entry("a port of root", "spec: {dataset: null, reward: null, ors: {server: {image: a, port: 80}}}",
			"spec.ors.server.port", "greater than or equal to 1024"),
		Entry("the worker's port", "spec: {dataset: null, reward: null, ors: {server: {image: a, port: 8081}}}",
			"spec.ors.server.port", "port 8081 is that of the worker"),
		Entry("a way of delivery", "spec: {dataset: null, reward: null, ors: {url: 'http://a', secretDelivery: Mail}}",
			"spec.ors.secretDelivery", "supported values"),
		Entry("shared that is not a boolean", "spec: {dataset: null, reward: null, ors: {server: {image: a, shared: Once}}}",
			"spec.ors.server.shared", "boolean"),
		Entry("a shared server of another", "spec: {dataset: null, reward: null, ors: {url: 'http://a', server: {image: a, "+
			"shared: true}}}", "spec.ors", "give exactly one of name"),
		Entry("allowed hosts in the body", "spec: {dataset: null, reward: null, ors: {url: 'http://a', secretDelivery: "+
			"Body, secrets: [{name: A, secretKeyRef: {name: s, key: k}, allowedHosts: [b.test]}]}}", "spec.ors",
			"set secretDelivery to Header or Both"),
		Entry("a secret without a key", "spec: {dataset: null, reward: null, ors: {url: 'http://a', secrets: [{name: A}]}}",
			"spec.ors.secrets[0].secretKeyRef", "Required"),
		Entry("interaction of nothing", "spec: {interaction: {}}", "spec.interaction", "toolUse"),
		Entry("two interactions", "spec: {interaction: {toolUse: {}, selfRefine: {}}}", "spec.interaction",
			"give exactly one of toolUse, solverJudge and selfRefine"),
		Entry("no solvers", "spec: {interaction: {solverJudge: {solvers: 0}}}", "spec.interaction.solverJudge.solvers",
			"greater than or equal to 1"),
		Entry("a solver prompt without the task", "spec: {interaction: {solverJudge: {solverPrompt: Solve it.}}}",
			"spec.interaction.solverJudge.solverPrompt", "must contain $(prompt)"),
		Entry("a judge prompt without solutions", "spec: {interaction: {solverJudge: {judgePrompt: $(prompt)}}}",
			"spec.interaction.solverJudge.judgePrompt", "must contain $(solutions)"),
		Entry("an answer pattern that does not compile", "spec: {interaction: {solverJudge: {answerPattern: '(a'}}}",
			"spec.interaction.solverJudge.answerPattern", "correct the regular expression"),
		Entry("an answer pattern without a group", "spec: {interaction: {solverJudge: {answerPattern: 'a+'}}}",
			"spec.interaction.solverJudge.answerPattern", "needs a group"),
		Entry("a critique of nothing", "spec: {interaction: {selfRefine: {critiquePrompt: $(prompt)}}}",
			"spec.interaction.selfRefine.critiquePrompt", "must contain $(draft)"),
		Entry("a revision without critique", "spec: {interaction: {selfRefine: {revisionPrompt: $(draft)}}}",
			"spec.interaction.selfRefine.revisionPrompt", "must contain $(critique)"),
		Entry("parse errors below none", "spec: {interaction: {toolUse: {parseErrors: {maxConsecutive: -1}}}}",
			"spec.interaction.toolUse.parseErrors.maxConsecutive", "greater than or equal to 0"),
		Entry("a dialect of calls", "spec: {interaction: {toolUse: {dialect: XML}}}", "spec.interaction.toolUse.dialect",
			"supported values"),
		Entry("what training makes of parse errors", "spec: {interaction: {toolUse: {parseErrors: {train: Drop}}}}",
			"spec.interaction.toolUse.parseErrors.train", "supported values"),
		Entry("operands", "spec: {dataset: {arithmetic: {maxOperand: 100000}}}", "spec.dataset.arithmetic.maxOperand",
			"less than or equal to 9999"),
		Entry("long name", "metadata: {name: "+strings.Repeat("a", 64)+"}", "metadata.name must have at most 63 characters",
			"rename it"),
	)
})
