// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// merged returns a manifest with a JSON merge patch applied to it. The patch is written as YAML.
func merged(manifest, patch string) *unstructured.Unstructured {
	GinkgoHelper()
	object, change := map[string]any{}, map[string]any{}
	Expect(yaml.Unmarshal([]byte(manifest), &object)).To(Succeed())
	Expect(yaml.Unmarshal([]byte(patch), &change)).To(Succeed())
	content, ok := overlay(object, change).(map[string]any)
	Expect(ok).To(BeTrue())
	// Numbers must be as JSON has them.
	data, err := json.Marshal(content)
	Expect(err).NotTo(HaveOccurred())
	result := &unstructured.Unstructured{}
	Expect(result.UnmarshalJSON(data)).To(Succeed())
	return result
}

// overlay merges maps, and the first entries of lists.
func overlay(base, change any) any {
	switch c := change.(type) {
	case map[string]any:
		b, ok := base.(map[string]any)
		if !ok {
			return c
		}
		for key, value := range c {
			if value == nil {
				delete(b, key)
				continue
			}
			b[key] = overlay(b[key], value)
		}
		return b
	default:
		return change
	}
}

// environments returns a patch of the smallest run's list of environments; more has further fields of its only entry.
func environments(more string) string {
	return "spec: {environments: [{name: arithmetic, " + more + "}]}"
}

// refuses returns the body of a table: the manifest with an entry's patch is refused with an error that has the entry's
// words.
func refuses(manifest string) func(patch string, words ...string) {
	return func(patch string, words ...string) {
		GinkgoHelper()
		object := merged(manifest, patch)
		object.SetNamespace("default")
		err := kube.Create(context.Background(), object)
		Expect(err).To(HaveOccurred())
		for _, w := range words {
			Expect(err.Error()).To(ContainSubstring(w))
		}
	}
}

var _ = Describe("A bad TrainingRun", func() {
	DescribeTable("is refused, with the field and the repair",
		refuses(smallestRun),
		Entry("group of one", environments("groupSize: 1, sampling: {maxTokens: 16}"), "spec.environments[0].groupSize",
			"groupSize must be at least 2"),
		Entry("groups that no message holds", environments("groupSize: 512, limits: {trajectoryTokens: 262144}, "+
			"sampling: {maxTokens: 16}"), "spec.environments[0].groupSize",
			"groupSize x limits.trajectoryTokens must be at most 130000000 tokens"),
		Entry("lag with ImportanceSampling", "spec: {algorithm: {lag: 1}}", "spec.algorithm",
			"set loss.name to PPO, CISPO or GSPO, or lag to 0"),
		Entry("lag with a role of another loss", "spec: {algorithm: {lag: 1, loss: {name: PPO}, roles: [{name: judge, "+
			"loss: {name: ImportanceSampling}}]}}", "spec.algorithm",
			"set the loss.name of every entry of roles to PPO, CISPO or GSPO"),
		Entry("a KL penalty without a coefficient", "spec: {algorithm: {kl: {discount: 0.5}}}",
			"spec.algorithm.kl.coefficient", "Required"),
		Entry("a KL penalty of 0", "spec: {algorithm: {kl: {coefficient: 0}}}", "spec.algorithm.kl.coefficient",
			"greater than 0"),
		Entry("a KL penalty's discount above 1", "spec: {algorithm: {kl: {coefficient: 0.1, discount: 1.5}}}",
			"spec.algorithm.kl.discount", "less than or equal to 1"),
		Entry("a KL penalty of two references", "spec: {algorithm: {kl: {coefficient: 0.1, reference: {model: m, "+
			"checkpoint: 'tinker://r/sampler_weights/s'}}}}", "spec.algorithm.kl.reference",
			"give exactly one of model and checkpoint"),
		Entry("a KL penalty without a reference", "spec: {algorithm: {kl: {coefficient: 0.1, reference: {}}}}",
			"spec.algorithm.kl.reference", "give exactly one of model and checkpoint"),
		Entry("a KL penalty of a training state", "spec: {algorithm: {kl: {coefficient: 0.1, reference: {checkpoint: "+
			"'tinker://r/weights/s'}}}}", "spec.algorithm.kl.reference.checkpoint", "since a training state cannot be sampled"),
		Entry("a teacher of two kinds", environments("groupSize: 8, sampling: {maxTokens: 16}, teacher: {model: m, "+
			"checkpoint: 'tinker://r/sampler_weights/s'}"), "spec.environments[0].teacher",
			"give exactly one of teacher.model and teacher.checkpoint"),
		Entry("no teacher", environments("groupSize: 8, sampling: {maxTokens: 16}, teacher: {coefficient: 1}"),
			"spec.environments[0].teacher", "give exactly one of teacher.model and teacher.checkpoint"),
		Entry("a teacher that is a training state", environments("groupSize: 8, sampling: {maxTokens: 16}, teacher: "+
			"{checkpoint: 'tinker://r/weights/s'}"), "spec.environments[0].teacher.checkpoint",
			"since a training state cannot be sampled"),
		Entry("a teacher's coefficient below 0", environments("groupSize: 8, sampling: {maxTokens: 16}, teacher: {model: m, "+
			"coefficient: -1}"), "spec.environments[0].teacher.coefficient", "greater than 0"),
		Entry("a teacher's discount above 1", environments("groupSize: 8, sampling: {maxTokens: 16}, teacher: {model: m, "+
			"discount: 2}"), "spec.environments[0].teacher.discount", "less than or equal to 1"),
		Entry("a role that changes nothing", "spec: {algorithm: {roles: [{name: judge}]}}", "spec.algorithm.roles[0]",
			"give advantage or loss, or remove the entry"),
		Entry("a role with an empty advantage", "spec: {algorithm: {roles: [{name: judge, advantage: {}}]}}",
			"spec.algorithm.roles[0].advantage", "at least 1 properties"),
		Entry("a role whose name cannot be part of a metric's name",
			"spec: {algorithm: {roles: [{name: Judge/1, advantage: {baseline: None}}]}}", "spec.algorithm.roles[0].name",
			"should match"),
		Entry("a role without a name", "spec: {algorithm: {roles: [{name: '', advantage: {baseline: None}}]}}",
			"spec.algorithm.roles[0].name", "should match"),
		Entry("a role twice", "spec: {algorithm: {roles: [{name: judge, advantage: {baseline: None}}, {name: judge, "+
			"advantage: {scale: None}}]}}", "spec.algorithm.roles[1]", "Duplicate"),
		Entry("a role's ddof", "spec: {algorithm: {roles: [{name: judge, advantage: {ddof: 2}}]}}",
			"spec.algorithm.roles[0].advantage.ddof", "less than or equal to 1"),
		Entry("a role's loss with another's setting",
			"spec: {algorithm: {roles: [{name: judge, loss: {name: ImportanceSampling, clipLow: 0.5}}]}}",
			"spec.algorithm.roles[0].loss",
			"clipLow and clipHigh are settings of PPO, CISPO and GSPO"),
		Entry("LeaveOneOut with GroupStd", "spec: {algorithm: {advantage: {baseline: LeaveOneOut, scale: GroupStd}}}",
			"spec.algorithm.advantage:", "set baseline to GroupMean, or scale to None"),
		Entry("LeaveOneOut with BatchStd", "spec: {algorithm: {advantage: {baseline: LeaveOneOut, scale: BatchStd}}}",
			"spec.algorithm.advantage:", "set baseline to GroupMean, or scale to None"),
		Entry("a role's LeaveOneOut with its GroupStd",
			"spec: {algorithm: {roles: [{name: judge, advantage: {baseline: LeaveOneOut, scale: GroupStd}}]}}",
			"spec.algorithm:", "set the entry's baseline to GroupMean, or its scale to None"),
		Entry("a role's LeaveOneOut with the algorithm's scale",
			"spec: {algorithm: {advantage: {scale: BatchStd}, roles: [{name: judge, advantage: {baseline: LeaveOneOut}}]}}",
			"spec.algorithm:", "set the entry's baseline to GroupMean, or its scale to None"),
		Entry("a role's scale with the algorithm's LeaveOneOut",
			"spec: {algorithm: {advantage: {baseline: LeaveOneOut}, roles: [{name: judge, advantage: {scale: GroupStd}}]}}",
			"spec.algorithm:", "set the entry's baseline to GroupMean, or its scale to None"),
		Entry("an empty list of roles", "spec: {algorithm: {roles: []}}", "spec.algorithm.roles", "at least 1 items"),
		Entry("an unknown grouping", "spec: {algorithm: {grouping: Group}}", "spec.algorithm.grouping", "supported values"),
		Entry("steps and epochs", "spec: {algorithm: {epochs: 3}}", "spec.algorithm", "give exactly one of steps and epochs"),
		Entry("neither steps nor epochs", "spec: {algorithm: {steps: null}}", "spec.algorithm",
			"give exactly one of steps and epochs"),
		Entry("a mount without a volume",
			"spec: {podOverrides: [{target: Learner, volumeMounts: [{name: v, mountPath: /v}]}]}",
			"spec.podOverrides[0]", "volumeMounts names a volume that volumes does not have"),
		Entry("a mount of another volume",
			"spec: {podOverrides: [{target: Workers, volumes: [{name: w, emptyDir: {}}], volumeMounts: "+
				"[{name: v, mountPath: /v}]}]}", "spec.podOverrides[0]", "add it to volumes, or correct the name"),
		Entry("two overrides of one target", "spec: {podOverrides: [{target: All}, {target: All}]}",
			"spec.podOverrides[1]", "Duplicate value"),
		Entry("overrides of an unknown target", "spec: {podOverrides: [{target: Probe}]}",
			"spec.podOverrides[0].target", "supported values"),
		Entry("overrides without a target", "spec: {podOverrides: [{image: own}]}", "spec.podOverrides[0].target",
			"Required"),
		Entry("no time to end", "spec: {podOverrides: [{target: Learner, terminationGracePeriodSeconds: 0}]}",
			"spec.podOverrides[0].terminationGracePeriodSeconds", "should be greater than or equal to 1"),
		Entry("a claim of resources that no pod has",
			"spec: {podOverrides: [{target: Learner, resources: {claims: [{name: gpu}]}}]}",
			"spec.podOverrides[0]",
			"resources.claims refers to resourceClaims, which the pod does not have: add them, or remove it"),
		Entry("an init container's claim of resources that no pod has",
			"spec: {podOverrides: [{target: Learner, initContainers: [{name: i, image: i, "+
				"resources: {claims: [{name: gpu}]}}]}]}",
			"spec.podOverrides[0]", "add them, or remove it"),
		Entry("an init container that mounts no volume",
			"spec: {podOverrides: [{target: Workers, initContainers: [{name: i, image: i, "+
				"volumeMounts: [{name: v, mountPath: /v}]}]}]}",
			"spec.podOverrides[0]", "initContainers mounts a volume that volumes does not have"),
		Entry("an init container of a reserved name",
			"spec: {podOverrides: [{target: Learner, initContainers: [{name: learner, image: i}]}]}",
			"spec.podOverrides[0].initContainers[0].name", "rename the container"),
		Entry("an init container of a server's name",
			"spec: {podOverrides: [{target: Workers, initContainers: [{name: environment-a, image: i}]}]}",
			"spec.podOverrides[0].initContainers[0].name", "rename the container"),
		Entry("an init container without an image", "spec: {podOverrides: [{target: Learner, initContainers: [{name: i}]}]}",
			"spec.podOverrides[0].initContainers[0].image", "Required"),
		Entry("an init container that is restarted on failure",
			"spec: {podOverrides: [{target: Learner, initContainers: [{name: i, image: i, restartPolicy: OnFailure}]}]}",
			"spec.podOverrides[0].initContainers[0].restartPolicy", "supported values"),
		Entry("a reserved variable", "spec: {podOverrides: [{target: Learner, env: [{name: TINKER_API_KEY, value: k}]}]}",
			"spec.podOverrides[0].env", "the API key comes from tinker.apiKeySecretKeyRef"),
		Entry("another reserved variable", "spec: {podOverrides: [{target: Workers, env: [{name: POD_IP, value: k}]}]}",
			"spec.podOverrides[0].env", "remove TINKER_API_KEY, POD_IP and POD_NAME"),
		Entry("a reserved label", "spec: {podOverrides: [{target: Learner, labels: {rl.tinker-operator.dev/run: x}}]}",
			"spec.podOverrides[0].labels", "remove it"),
		Entry("a label of Jobs",
			"spec: {podOverrides: [{target: Workers, labels: {job-name: x}}]}", "spec.podOverrides[0].labels", "remove it"),
		Entry("a label value that is not valid", "spec: {podOverrides: [{target: Workers, labels: {team: 'a b'}}]}",
			"spec.podOverrides[0].labels", "should match"),
		Entry("a reserved volume",
			"spec: {podOverrides: [{target: Learner, volumes: [{name: tinker-operator-run, emptyDir: {}}]}]}",
			"spec.podOverrides[0].volumes[0].name", "rename the volume"),
		Entry("a volume name that is not valid",
			"spec: {podOverrides: [{target: Learner, volumes: [{name: A_b, emptyDir: {}}]}]}",
			"spec.podOverrides[0].volumes[0].name", "should match"),
		Entry("a reserved path",
			"spec: {podOverrides: [{target: Learner, volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, "+
				"mountPath: /artifacts/x}]}]}", "spec.podOverrides[0].volumeMounts[0].mountPath", "choose another"),
		Entry("the folder of data",
			"spec: {podOverrides: [{target: Workers, volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, "+
				"mountPath: /var/data}]}]}", "spec.podOverrides[0].volumeMounts[0].mountPath", "choose another"),
		Entry("no DNS server", "spec: {podOverrides: [{target: Learner, dnsPolicy: None}]}", "spec.podOverrides[0]",
			"dnsPolicy None needs dnsConfig.nameservers: give at least one"),
		Entry("an unknown DNS policy",
			"spec: {podOverrides: [{target: Learner, dnsPolicy: Cluster}]}", "spec.podOverrides[0].dnsPolicy",
			"supported values"),
		Entry("an unknown pull policy", "spec: {podOverrides: [{target: Learner, imagePullPolicy: Sometimes}]}",
			"spec.podOverrides[0].imagePullPolicy", "supported values"),
		Entry("a relative path",
			"spec: {podOverrides: [{target: Learner, volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, "+
				"mountPath: v}]}]}", "spec.podOverrides[0].volumeMounts[0].mountPath", "must be absolute"),
		Entry("too many epochs", "spec: {algorithm: {steps: null, epochs: 1000001}}", "spec.algorithm.epochs",
			"less than or equal to 1000000"),
		Entry("too many steps", "spec: {algorithm: {steps: 1000000001}}", "spec.algorithm.steps",
			"less than or equal to 1000000000"),
		Entry("too many tasks of a step", "spec: {algorithm: {tasksPerStep: 1000001}}", "spec.algorithm.tasksPerStep",
			"less than or equal to 1000000"),
		Entry("too great a weight", environments("groupSize: 8, weight: 1000001, sampling: {maxTokens: 16}"),
			"spec.environments[0].weight", "less than or equal to 1000000"),
		Entry("too much concurrency", "spec: {rollouts: {concurrency: 1000001}}", "spec.rollouts.concurrency",
			"less than or equal to 1000000"),
		Entry("unknown loss", "spec: {algorithm: {loss: {name: grpo}}}", "spec.algorithm.loss.name",
			`supported values: "ImportanceSampling", "PPO", "CISPO", "GSPO"`),
		Entry("clip of ImportanceSampling", "spec: {algorithm: {loss: {name: ImportanceSampling, clipLow: 0.8}}}",
			"spec.algorithm.loss", "clipLow and clipHigh are settings of PPO, CISPO and GSPO: remove them or change loss.name"),
		Entry("clips the wrong way round", "spec: {algorithm: {loss: {name: PPO, clipLow: 1.3, clipHigh: 1.2}}}",
			"spec.algorithm.loss", "clipLow must be below clipHigh"),
		Entry("clipLow above the default of clipHigh", "spec: {algorithm: {loss: {name: PPO, clipLow: 1.3}}}",
			"spec.algorithm.loss", "lower clipLow or give clipHigh"),
		Entry("clipHigh below the default of clipLow", "spec: {algorithm: {loss: {name: PPO, clipHigh: 0.5}}}",
			"spec.algorithm.loss", "raise clipHigh or give clipLow"),
		Entry("initFrom that is not a checkpoint path", "spec: {initFrom: {checkpoint: s3://bucket/x, optimizer: Reset}}",
			"spec.initFrom.checkpoint", "a checkpoint path is tinker://RUN/weights/NAME"),
		Entry("initFrom of sampler weights", "spec: {initFrom: {checkpoint: 'tinker://r/sampler_weights/n', "+
			"optimizer: Reset}}", "spec", "give the training state, tinker://RUN/weights/NAME"),
		Entry("initFrom without optimizer", "spec: {initFrom: {checkpoint: 'tinker://r/weights/n'}}", "spec",
			"initFrom.optimizer is needed to train"),
		Entry("initFrom of two",
			"spec: {initFrom: {checkpoint: 'tinker://r/weights/n', runRef: {name: x}, optimizer: Reset}}",
			"spec.initFrom", "give exactly one of checkpoint and run"),
		Entry("long name", "metadata: {name: "+strings.Repeat("a", 41)+"}", "metadata.name must have at most 40 characters",
			"shorten or rename it"),
		Entry("name that begins with a digit", "metadata: {name: 1run}", "metadata.name", "begin with a letter", "rename it"),
		Entry("name with a dot", "metadata: {name: a.b}", "metadata.name", "rename it"),
		Entry("temperature", environments("groupSize: 8, sampling: {maxTokens: 16, temperature: 0.7}"),
			"spec.environments[0]", "accept that with sampling.allowBiased: true"),
		Entry("topP", environments("groupSize: 8, sampling: {maxTokens: 16, topP: 0.9}"), "spec.environments[0]",
			"accept that with sampling.allowBiased: true"),
		Entry("topK", environments("groupSize: 8, sampling: {maxTokens: 16, topK: 10}"), "spec.environments[0]",
			"accept that with sampling.allowBiased: true"),
		Entry("another word for sharedPrompt", environments("groupSize: 8, sampling: {maxTokens: 16, sharedPrompt: Group}"),
			"spec.environments[0].sampling.sharedPrompt", "must be of type boolean"),
		Entry("more retries than are numbered", environments("groupSize: 8, retries: 64, sampling: {maxTokens: 16}"),
			"spec.environments[0].retries", "less than or equal to 63"),
		Entry("too many turns", environments("groupSize: 8, limits: {turns: 2049}, sampling: {maxTokens: 16}"),
			"spec.environments[0].limits.turns", "less than or equal to 2048"),
		Entry("no maxTokens", environments("groupSize: 8"), "spec.environments[0]", "sampling.maxTokens is needed"),
		Entry("minMembers above the group", environments("groupSize: 8, minMembers: 9, sampling: {maxTokens: 16}"),
			"spec.environments[0]", "lower minMembers or raise groupSize"),
		Entry("another word for onUnavailable", environments("groupSize: 8, onUnavailable: Fail, sampling: {maxTokens: 16}"),
			"spec.environments[0].onUnavailable", `supported values: "Wait", "Skip"`),
		Entry("Skip of the only environment", environments("groupSize: 8, onUnavailable: Skip, sampling: {maxTokens: 16}"),
			"spec.environments", "trains on the other environments, but this is the only one"),
		Entry("name of an environment", "spec: {environments: [{name: Org/Name, groupSize: 8, sampling: {maxTokens: 16}}]}",
			"spec.environments[0].name", "it keys metrics"),
		Entry("same environment twice", "spec: {environments: [{name: a, groupSize: 8, sampling: {maxTokens: 16}}, {name: "+
			"a, groupSize: 8, sampling: {maxTokens: 16}}]}", "spec.environments[1]", "Duplicate value"),
		Entry("weights for some", "spec: {environments: [{name: a, weight: 1, groupSize: 8, sampling: {maxTokens: 16}}, "+
			"{name: b, groupSize: 8, sampling: {maxTokens: 16}}]}", "spec.environments",
			"add the missing ones or remove them all"),
		Entry("epochs with weights", "spec: {environments: [{name: a, weight: 1, groupSize: 8, sampling: {maxTokens: "+
			"16}}], algorithm: {steps: null, epochs: 3}}", "spec", "give algorithm.steps, or remove the weights"),
		Entry("environments without algorithm", "spec: {algorithm: null}", "spec",
			"mode Train needs environments and algorithm: give both"),
		Entry("algorithm without environments", "spec: {environments: null}", "spec",
			"mode Train needs environments and algorithm: give both"),
		Entry("an evaluation with algorithm", "spec: {mode: Evaluate, environments: null, evaluation: {environments: "+
			"[{name: a, environmentRef: {name: a}, sampling: {maxTokens: 16}}]}}", "spec",
			"mode Evaluate trains nothing: remove algorithm and environments"),
		Entry("nothing to do", "spec: {mode: Evaluate, algorithm: null, environments: null, evaluation: null}", "spec",
			"mode Evaluate needs evaluation.environments"),
		Entry("an unknown choice of episodes", "spec: {mode: Supervise, environments: null, "+
			"supervised: {dataset: {arithmetic: {maxOperand: 9}}, episodes: {select: Best}}}", "spec.supervised.episodes.select",
			`supported values: "All", "BestOfTask"`),
		Entry("an unknown mode", "spec: {mode: Score}", "spec.mode", `supported values: "Train", "Supervise", "Evaluate"`),
		Entry("evaluation elsewhere without maxTokens", "spec: {evaluation: {environments: [{name: arithmetic, "+
			"environmentRef: {name: arithmetic}}]}}", "spec.evaluation.environments[0]",
			"sampling.maxTokens is needed without inheritFrom: add it"),
		Entry("an evaluation that inherits by its name alone", "spec: {evaluation: {environments: [{name: arithmetic, "+
			"sampling: {maxTokens: 16}}]}}", "spec.evaluation.environments[0]",
			"needs environmentRef, the RewardEnvironment to evaluate on, or inheritFrom"),
		Entry("an evaluation that inherits from no entry", "spec: {evaluation: {environments: [{name: arithmetic, "+
			"inheritFrom: other}]}}", "spec", "inheritFrom names no entry of environments: correct the name"),
		Entry("passAt above the samples", "spec: {evaluation: {environments: [{name: arithmetic, inheritFrom: arithmetic, "+
			"passAt: [4]}]}}",
			"spec.evaluation.environments[0]", "raise samplesPerTask or remove the value"),
		Entry("a share of sampling above 1", "spec: {evaluation: {samplingShare: 20}}", "spec.evaluation.samplingShare",
			"should be less than or equal to 1"),
		Entry("a negative share of sampling", "spec: {evaluation: {samplingShare: -0.1}}", "spec.evaluation.samplingShare",
			"should be greater than or equal to 0"),
		Entry("allowBiased in evaluation", "spec: {evaluation: {environments: [{name: arithmetic, "+
			"inheritFrom: arithmetic, sampling: {allowBiased: true}}]}}", "spec.evaluation.environments[0]",
			"evaluation may sample with any settings: remove it"),
		Entry("reward bounds", environments("groupSize: 8, sampling: {maxTokens: 16}, reward: {min: 1, max: 0}"),
			"spec.environments[0].reward", "min must be below max"),
		Entry("unknown baseline", "spec: {algorithm: {advantage: {baseline: Mean}}}", "spec.algorithm.advantage.baseline",
			"supported values"),
		Entry("ddof", "spec: {algorithm: {advantage: {ddof: 2}}}", "spec.algorithm.advantage.ddof",
			"less than or equal to 1"),
		Entry("learning rate of 0", "spec: {algorithm: {optimizer: {learningRate: 0}}}",
			"spec.algorithm.optimizer.learningRate", "greater than 0"),
		Entry("learning rate in quotes", `spec: {algorithm: {optimizer: {learningRate: "4e-5"}}}`,
			"spec.algorithm.optimizer.learningRate", "number"),
		Entry("no state at all", "spec: {checkpoints: {everySteps: 0, rolling: {everySteps: 0}}}", "spec.checkpoints",
			"set one above 0"),
		Entry("rolling states that expire at once", "spec: {checkpoints: {rolling: {ttlSeconds: 60}}}",
			"spec.checkpoints.rolling.ttlSeconds", "greater than or equal to 600"),
		Entry("baseURL", "spec: {tinker: {baseURL: tinkersim}}", "spec.tinker.baseURL",
			"must begin with http:// or https://"),
		Entry("proxyURL with a password", "spec: {tinker: {proxyURL: 'http://u:p@proxy:3128'}}", "spec.tinker.proxyURL",
			"without a user name, a password"),
		Entry("caBundleConfigMapKeyRef without a key", "spec: {tinker: {caBundleConfigMapKeyRef: {name: authorities}}}",
			"spec.tinker.caBundleConfigMapKeyRef.key", "Required"),
		Entry("clientCertificateSecretRef without a name", "spec: {tinker: {clientCertificateSecretRef: {}}}",
			"spec.tinker.clientCertificateSecretRef.name", "Required"),
		Entry("tokenizer of two places", "spec: {model: {tokenizer: {repository: o/m, url: 'https://h/t', sha256: "+
			strings.Repeat("a", 64)+"}}}", "spec.model.tokenizer", "give exactly one of repository and url"),
		Entry("tokenizer without a source", "spec: {model: {tokenizer: {}}}", "spec.model.tokenizer",
			"give exactly one of repository and url"),
		Entry("tokenizer at a URL without its digest", "spec: {model: {tokenizer: {url: 'https://h/t'}}}",
			"spec.model.tokenizer", "url needs sha256"),
		Entry("revision of a URL", "spec: {model: {tokenizer: {url: 'https://h/t', revision: main, sha256: "+
			strings.Repeat("a", 64)+"}}}", "spec.model.tokenizer", "give repository, or remove revision"),
		Entry("token of a URL", "spec: {model: {tokenizer: {url: 'https://h/t', sha256: "+strings.Repeat("a", 64)+
			", tokenSecretKeyRef: {name: hf, key: TOKEN}}}}", "spec.model.tokenizer",
			"give repository, or remove tokenSecretKeyRef"),
		Entry("tokenizer's repository without owner", "spec: {model: {tokenizer: {repository: qwen}}}",
			"spec.model.tokenizer.repository", "must be OWNER/NAME"),
		Entry("digest that is invalid", "spec: {model: {tokenizer: {repository: o/m, sha256: abc}}}",
			"spec.model.tokenizer.sha256", "64 hexadecimal digits"),
		Entry("no key", "spec: {tinker: {apiKeySecretKeyRef: null}}", "spec.tinker",
			"tinker.apiKeySecretKeyRef, a key of your own"),
		Entry("negative workers", "spec: {rollouts: {workers: -1}}", "spec.rollouts.workers", "greater than or equal to 0"),
		Entry("artifacts of nothing", "spec: {artifacts: {}}", "spec.artifacts", "claimName"),
		Entry("artifacts at two places", "spec: {artifacts: {claimName: c, url: 's3://b'}}", "spec.artifacts",
			"give exactly one of claimName and url"),
		Entry("keys for a claim", "spec: {artifacts: {claimName: c, secretRef: {name: s}}}", "spec.artifacts",
			"secretRef has the keys of url's store"),
		Entry("too many recorded groups", "spec: {artifacts: {claimName: c, groupsPerStep: 65}}",
			"spec.artifacts.groupsPerStep", "less than or equal to 64"),
		Entry("an unknown selection of episodes", "spec: {artifacts: {claimName: c, episodes: Some}}",
			"spec.artifacts.episodes", `supported values: "None", "Groups", "All"`),
		Entry("a store of a kind that is not built in", "spec: {artifacts: {url: 'ftp://b/p'}}", "spec.artifacts.url",
			"gs://BUCKET/PREFIX"),
		Entry("settings of a store that has none", "spec: {artifacts: {url: 'gs://b/p?a=b'}}", "spec.artifacts.url",
			"without them"),
		Entry("a typing error in the artifacts' URL", "spec: {artifacts: {url: 's3:/b/p'}}", "spec.artifacts.url",
			"url must be s3://BUCKET/PREFIX"),
		Entry("tracking by nothing", "spec: {tracking: {}}", "spec.tracking", "tracking names no service: give wandb"),
		Entry("tensorboard without artifacts", "spec: {tracking: {tensorboard: {}}}", "spec",
			"tracking.tensorboard needs artifacts"),
		Entry("a path in tensorboard's runName",
			"spec: {artifacts: {claimName: c}, tracking: {tensorboard: {runName: ../x}}}", "spec.tracking.tensorboard.runName",
			"runName is the name of a folder"),
		Entry("wandb without a project", "spec: {tracking: {wandb: {apiKeySecretKeyRef: {name: w, key: k}}}}",
			"spec.tracking.wandb.project", "Required"),
		Entry("wandb without a key", "spec: {tracking: {wandb: {project: p}}}", "spec.tracking.wandb.apiKeySecretKeyRef",
			"Required"),
		Entry("an entity in wandb's project", "spec: {tracking: {wandb: {project: team/p, apiKeySecretKeyRef: {name: w, "+
			"key: k}}}}", "spec.tracking.wandb.project", "the team belongs into entity"),
		Entry("a project in wandb's entity", "spec: {tracking: {wandb: {project: p, entity: team/p, apiKeySecretKeyRef: "+
			"{name: w, key: k}}}}", "spec.tracking.wandb.entity", "the project belongs into project"),
		Entry("a typing error in wandb's baseURL", "spec: {tracking: {wandb: {project: p, baseURL: 'api.wandb.ai', "+
			"apiKeySecretKeyRef: {name: w, key: k}}}}", "spec.tracking.wandb.baseURL",
			"must be http:// or https:// with a host"),
		Entry("a key in wandb's baseURL", "spec: {tracking: {wandb: {project: p, baseURL: 'https://api:KEY@api.wandb.ai', "+
			"apiKeySecretKeyRef: {name: w, key: k}}}}", "spec.tracking.wandb.baseURL",
			"the key belongs into apiKeySecretKeyRef's Secret"),
		Entry("mlflow without an experiment", "spec: {tracking: {mlflow: {baseURL: 'http://mlflow'}}}",
			"spec.tracking.mlflow.experiment", "Required"),
		Entry("mlflow without an address", "spec: {tracking: {mlflow: {experiment: e}}}", "spec.tracking.mlflow.baseURL",
			"Required"),
		Entry("a typing error in mlflow's baseURL", "spec: {tracking: {mlflow: {experiment: e, baseURL: 'mlflow:5000'}}}",
			"spec.tracking.mlflow.baseURL", "must be http:// or https:// with a host"),
		Entry("a username of mlflow without a password",
			"spec: {tracking: {mlflow: {experiment: e, baseURL: 'http://mlflow', username: u}}}", "spec.tracking.mlflow",
			"give both, or tokenSecretKeyRef"),
		Entry("a token and a password for mlflow", "spec: {tracking: {mlflow: {experiment: e, baseURL: 'http://mlflow', "+
			"username: u, passwordSecretKeyRef: {name: m, key: k}, tokenSecretKeyRef: {name: m, key: k}}}}",
			"spec.tracking.mlflow",
			"remove tokenSecretKeyRef, or username and passwordSecretKeyRef"),
		Entry("a tag of mlflow that the operator sets",
			"spec: {tracking: {mlflow: {experiment: e, baseURL: 'http://mlflow', tags: {tinker-operator.uid: x}}}}",
			"spec.tracking.mlflow.tags", "do not begin with tinker-operator."),
		Entry("openReward without a key", "spec: {tracking: {openreward: {runName: r}}}",
			"spec.tracking.openreward.apiKeySecretKeyRef", "Required"),
		Entry("a typing error in openReward's baseURL",
			"spec: {tracking: {openreward: {baseURL: 'openreward.ai', apiKeySecretKeyRef: {name: o, key: k}}}}",
			"spec.tracking.openreward.baseURL", "must be http:// or https:// with a host"),
		Entry("a tag twice", "spec: {tracking: {wandb: {project: p, tags: [a, a], apiKeySecretKeyRef: {name: w, key: k}}}}",
			"spec.tracking.wandb.tags", "Duplicate"),
		Entry("a budget without a limit", "spec: {budget: {}}", "spec.budget",
			"budget has no limit: give tokens, usd or activeSeconds"),
		Entry("a budget of 0 tokens", "spec: {artifacts: {claimName: c}, budget: {tokens: 0}}", "spec.budget.tokens",
			"greater than or equal to 1"),
		Entry("a budget of no dollars", "spec: {artifacts: {claimName: c}, budget: {usd: 0}}", "spec.budget.usd",
			"should be greater than or equal to 0.01"),
		Entry("a budget of tokens without artifacts", "spec: {budget: {tokens: 1000}}", "spec",
			"budget.tokens and budget.usd need artifacts"),
		Entry("prices without dollars", "spec: {artifacts: {claimName: c}, budget: {tokens: 1, prices: [{model: m, "+
			"promptUSDPerMillion: 1, sampledUSDPerMillion: 1}]}}", "spec.budget", "give usd, or remove prices"),
		Entry("a price below 0", "spec: {artifacts: {claimName: c}, budget: {usd: 1, prices: [{model: m, "+
			"promptUSDPerMillion: -1, sampledUSDPerMillion: 1}]}}", "spec.budget.prices[0].promptUSDPerMillion",
			"greater than or equal to 0"),
		Entry("two prices of a model", "spec: {artifacts: {claimName: c}, budget: {usd: 1, prices: [{model: m, "+
			"promptUSDPerMillion: 1, sampledUSDPerMillion: 1}, {model: m, promptUSDPerMillion: 1, sampledUSDPerMillion: 2}]}}",
			"spec.budget.prices[1]", "Duplicate"),
		Entry("volume of two kinds",
			"spec: {podOverrides: [{target: Learner, volumes: [{name: x, emptyDir: {}, configMap: {name: other}}]}]}",
			"spec.podOverrides[0].volumes[0]", "give exactly one of"),
	)
})
