// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// merged gives a manifest with a JSON merge patch on it, which is written as YAML.
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

// environments is the list of the smallest run, with more in its one entry.
func environments(more string) string {
	return "spec: {environments: [{name: arithmetic, " + more + "}]}"
}

// refuses returns the body of a table: with the patch of an entry the manifest is refused, with the words of the entry.
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
		Entry("group of one", environments("groupSize: 1, sampling: {maxTokens: 16}"), "spec.environments[0].groupSize", "greater than or equal to 2"),
		Entry("lag with importance_sampling", "spec: {algorithm: {lag: 1}}", "spec.algorithm", "set loss.name to ppo or cispo, or lag to 0"),
		Entry("lag with dro", "spec: {algorithm: {lag: 2, loss: {name: dro}}}", "spec.algorithm", "set loss.name to ppo or cispo, or lag to 0"),
		Entry("dro", "spec: {algorithm: {loss: {name: dro}}}", "spec.algorithm.loss:", "use importance_sampling, ppo or cispo"),
		Entry("a role's dro", "spec: {algorithm: {roles: [{name: judge, loss: {name: dro, beta: 0.1}}]}}", "spec.algorithm.roles[0].loss:", "use importance_sampling, ppo or cispo"),
		Entry("lag with a role of another loss", "spec: {algorithm: {lag: 1, loss: {name: ppo}, roles: [{name: judge, loss: {name: importance_sampling}}]}}", "spec.algorithm", "set the loss.name of every entry of roles to ppo or cispo"),
		Entry("a KL penalty without a coefficient", "spec: {algorithm: {kl: {discount: 0.5}}}", "spec.algorithm.kl.coefficient", "Required"),
		Entry("a KL penalty of 0", "spec: {algorithm: {kl: {coefficient: 0}}}", "spec.algorithm.kl.coefficient", "greater than 0"),
		Entry("a KL penalty's discount above 1", "spec: {algorithm: {kl: {coefficient: 0.1, discount: 1.5}}}", "spec.algorithm.kl.discount", "less than or equal to 1"),
		Entry("a KL penalty of two references", "spec: {algorithm: {kl: {coefficient: 0.1, reference: {model: m, checkpoint: 'tinker://r/sampler_weights/s'}}}}", "spec.algorithm.kl.reference", "give exactly one of model and checkpoint"),
		Entry("a KL penalty without a reference", "spec: {algorithm: {kl: {coefficient: 0.1, reference: {}}}}", "spec.algorithm.kl.reference", "give exactly one of model and checkpoint"),
		Entry("a KL penalty of a training state", "spec: {algorithm: {kl: {coefficient: 0.1, reference: {checkpoint: 'tinker://r/weights/s'}}}}", "spec.algorithm.kl.reference.checkpoint", "since a training state cannot be sampled"),
		Entry("a role that changes nothing", "spec: {algorithm: {roles: [{name: judge}]}}", "spec.algorithm.roles[0]", "give advantage or loss, or remove the entry"),
		Entry("a role with an empty advantage", "spec: {algorithm: {roles: [{name: judge, advantage: {}}]}}", "spec.algorithm.roles[0].advantage", "at least 1 properties"),
		Entry("a role whose name cannot be part of a metric's name", "spec: {algorithm: {roles: [{name: Judge/1, advantage: {baseline: None}}]}}", "spec.algorithm.roles[0].name", "should match"),
		Entry("a role without a name", "spec: {algorithm: {roles: [{name: '', advantage: {baseline: None}}]}}", "spec.algorithm.roles[0].name", "should match"),
		Entry("a role twice", "spec: {algorithm: {roles: [{name: judge, advantage: {baseline: None}}, {name: judge, advantage: {scale: None}}]}}", "spec.algorithm.roles[1]", "Duplicate"),
		Entry("a role's ddof", "spec: {algorithm: {roles: [{name: judge, advantage: {ddof: 2}}]}}", "spec.algorithm.roles[0].advantage.ddof", "less than or equal to 1"),
		Entry("a role's loss with another's setting", "spec: {algorithm: {roles: [{name: judge, loss: {name: dro, clipLow: 0.5}}]}}", "spec.algorithm.roles[0].loss", "clipLow and clipHigh are settings of ppo and cispo"),
		Entry("LeaveOneOut with GroupStd", "spec: {algorithm: {advantage: {baseline: LeaveOneOut, scale: GroupStd}}}", "spec.algorithm.advantage:", "set baseline to GroupMean, or scale to None"),
		Entry("LeaveOneOut with BatchStd", "spec: {algorithm: {advantage: {baseline: LeaveOneOut, scale: BatchStd}}}", "spec.algorithm.advantage:", "set baseline to GroupMean, or scale to None"),
		Entry("a role's LeaveOneOut with its GroupStd", "spec: {algorithm: {roles: [{name: judge, advantage: {baseline: LeaveOneOut, scale: GroupStd}}]}}", "spec.algorithm:", "set the entry's baseline to GroupMean, or its scale to None"),
		Entry("a role's LeaveOneOut with the algorithm's scale", "spec: {algorithm: {advantage: {scale: BatchStd}, roles: [{name: judge, advantage: {baseline: LeaveOneOut}}]}}", "spec.algorithm:", "set the entry's baseline to GroupMean, or its scale to None"),
		Entry("a role's scale with the algorithm's LeaveOneOut", "spec: {algorithm: {advantage: {baseline: LeaveOneOut}, roles: [{name: judge, advantage: {scale: GroupStd}}]}}", "spec.algorithm:", "set the entry's baseline to GroupMean, or its scale to None"),
		Entry("an empty list of roles", "spec: {algorithm: {roles: []}}", "spec.algorithm.roles", "at least 1 items"),
		Entry("an unknown grouping", "spec: {algorithm: {grouping: Group}}", "spec.algorithm.grouping", "supported values"),
		Entry("steps and epochs", "spec: {algorithm: {epochs: 3}}", "spec.algorithm", "give exactly one of steps and epochs"),
		Entry("neither steps nor epochs", "spec: {algorithm: {steps: null}}", "spec.algorithm", "give exactly one of steps and epochs"),
		Entry("a mount without a volume", "spec: {learner: {pod: {volumeMounts: [{name: v, mountPath: /v}]}}}", "spec.learner.pod", "volumeMounts names a volume that volumes does not have"),
		Entry("a mount of another volume", "spec: {rollouts: {pod: {volumes: [{name: w, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /v}]}}}", "spec.rollouts.pod", "add it to volumes, or correct the name"),
		Entry("no time to end", "spec: {learner: {pod: {terminationGracePeriodSeconds: 0}}}", "spec.learner.pod.terminationGracePeriodSeconds", "should be greater than or equal to 1"),
		Entry("a claim of resources that no pod has", "spec: {learner: {pod: {resources: {claims: [{name: gpu}]}}}}", "spec.learner.pod", "resources.claims refers to resourceClaims, which the pod does not have: add them, or remove it"),
		Entry("an init container's claim of resources that no pod has", "spec: {learner: {pod: {initContainers: [{name: i, image: i, resources: {claims: [{name: gpu}]}}]}}}", "spec.learner.pod", "add them, or remove it"),
		Entry("an init container that mounts no volume", "spec: {rollouts: {pod: {initContainers: [{name: i, image: i, volumeMounts: [{name: v, mountPath: /v}]}]}}}", "spec.rollouts.pod", "initContainers mounts a volume that volumes does not have"),
		Entry("an init container of a reserved name", "spec: {learner: {pod: {initContainers: [{name: learner, image: i}]}}}", "spec.learner.pod.initContainers[0].name", "rename the container"),
		Entry("an init container of a server's name", "spec: {rollouts: {pod: {initContainers: [{name: environment-a, image: i}]}}}", "spec.rollouts.pod.initContainers[0].name", "rename the container"),
		Entry("an init container without an image", "spec: {learner: {pod: {initContainers: [{name: i}]}}}", "spec.learner.pod.initContainers[0].image", "Required"),
		Entry("an init container that is restarted on failure", "spec: {learner: {pod: {initContainers: [{name: i, image: i, restartPolicy: OnFailure}]}}}", "spec.learner.pod.initContainers[0].restartPolicy", "supported values"),
		Entry("a reserved variable", "spec: {learner: {pod: {env: [{name: TINKER_API_KEY, value: k}]}}}", "spec.learner.pod.env", "the API key comes from tinker.apiKeySecretRef"),
		Entry("another reserved variable", "spec: {rollouts: {pod: {env: [{name: POD_IP, value: k}]}}}", "spec.rollouts.pod.env", "remove TINKER_API_KEY, POD_IP and POD_NAME"),
		Entry("a reserved label", "spec: {learner: {pod: {labels: {rl.tinker-operator.dev/run: x}}}}", "spec.learner.pod.labels", "remove it"),
		Entry("a label of Jobs", "spec: {rollouts: {pod: {labels: {job-name: x}}}}", "spec.rollouts.pod.labels", "remove it"),
		Entry("a label value that is not valid", "spec: {rollouts: {pod: {labels: {team: 'a b'}}}}", "spec.rollouts.pod.labels", "should match"),
		Entry("a reserved volume", "spec: {learner: {pod: {volumes: [{name: tinker-operator-run, emptyDir: {}}]}}}", "spec.learner.pod.volumes[0].name", "rename the volume"),
		Entry("a volume name that is not valid", "spec: {learner: {pod: {volumes: [{name: A_b, emptyDir: {}}]}}}", "spec.learner.pod.volumes[0].name", "should match"),
		Entry("a reserved path", "spec: {learner: {pod: {volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /artifacts/x}]}}}", "spec.learner.pod.volumeMounts[0].mountPath", "choose another"),
		Entry("the folder of data", "spec: {rollouts: {pod: {volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /var/data}]}}}", "spec.rollouts.pod.volumeMounts[0].mountPath", "choose another"),
		Entry("no DNS server", "spec: {learner: {pod: {dnsPolicy: None}}}", "spec.learner.pod", "dnsPolicy None needs dnsConfig.nameservers: give at least one"),
		Entry("an unknown DNS policy", "spec: {learner: {pod: {dnsPolicy: Cluster}}}", "spec.learner.pod.dnsPolicy", "supported values"),
		Entry("an unknown pull policy", "spec: {learner: {pod: {imagePullPolicy: Sometimes}}}", "spec.learner.pod.imagePullPolicy", "supported values"),
		Entry("a relative path", "spec: {learner: {pod: {volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: v}]}}}", "spec.learner.pod.volumeMounts[0].mountPath", "must be absolute"),
		Entry("too many epochs", "spec: {algorithm: {steps: null, epochs: 1000001}}", "spec.algorithm.epochs", "less than or equal to 1000000"),
		Entry("too many steps", "spec: {algorithm: {steps: 1000000001}}", "spec.algorithm.steps", "less than or equal to 1000000000"),
		Entry("too many tasks of a step", "spec: {algorithm: {tasksPerStep: 1000001}}", "spec.algorithm.tasksPerStep", "less than or equal to 1000000"),
		Entry("too great a weight", environments("groupSize: 8, weight: 1000001, sampling: {maxTokens: 16}"), "spec.environments[0].weight", "less than or equal to 1000000"),
		Entry("too much concurrency", "spec: {rollouts: {concurrency: 1000001}}", "spec.rollouts.concurrency", "less than or equal to 1000000"),
		Entry("unknown loss", "spec: {algorithm: {loss: {name: grpo}}}", "spec.algorithm.loss.name", `supported values: "importance_sampling", "ppo", "cispo", "dro"`),
		Entry("clip of importance_sampling", "spec: {algorithm: {loss: {name: importance_sampling, clipLow: 0.8}}}", "spec.algorithm.loss", "clipLow and clipHigh are settings of ppo and cispo: remove them or change loss.name"),
		Entry("beta of ppo", "spec: {algorithm: {loss: {name: ppo, beta: 0.1}}}", "spec.algorithm.loss", "beta is a setting of dro, which is refused: remove it"),
		Entry("clips the wrong way round", "spec: {algorithm: {loss: {name: ppo, clipLow: 1.3, clipHigh: 1.2}}}", "spec.algorithm.loss", "clipLow must be below clipHigh"),
		Entry("clipLow above the default of clipHigh", "spec: {algorithm: {loss: {name: ppo, clipLow: 1.3}}}", "spec.algorithm.loss", "lower clipLow or give clipHigh"),
		Entry("clipHigh below the default of clipLow", "spec: {algorithm: {loss: {name: ppo, clipHigh: 0.5}}}", "spec.algorithm.loss", "raise clipHigh or give clipLow"),
		Entry("initFrom that is not a checkpoint path", "spec: {initFrom: {checkpoint: s3://bucket/x, optimizer: Reset}}", "spec.initFrom.checkpoint", "a checkpoint path is tinker://RUN/weights/NAME"),
		Entry("initFrom of sampler weights", "spec: {initFrom: {checkpoint: 'tinker://r/sampler_weights/n', optimizer: Reset}}", "spec", "give the training state, tinker://RUN/weights/NAME"),
		Entry("initFrom without optimizer", "spec: {initFrom: {checkpoint: 'tinker://r/weights/n'}}", "spec", "initFrom.optimizer is needed to train"),
		Entry("initFrom of two", "spec: {initFrom: {checkpoint: 'tinker://r/weights/n', run: {name: x}, optimizer: Reset}}", "spec.initFrom", "give exactly one of checkpoint and run"),
		Entry("long name", "metadata: {name: "+strings.Repeat("a", 41)+"}", "metadata.name must have at most 40 characters", "shorten or rename it"),
		Entry("name that begins with a digit", "metadata: {name: 1run}", "metadata.name", "begin with a letter", "rename it"),
		Entry("name with a dot", "metadata: {name: a.b}", "metadata.name", "rename it"),
		Entry("temperature", environments("groupSize: 8, sampling: {maxTokens: 16, temperature: 0.7}"), "spec.environments[0]", "accept that with sampling.allowBiased: true"),
		Entry("topP", environments("groupSize: 8, sampling: {maxTokens: 16, topP: 0.9}"), "spec.environments[0]", "accept that with sampling.allowBiased: true"),
		Entry("topK", environments("groupSize: 8, sampling: {maxTokens: 16, topK: 10}"), "spec.environments[0]", "accept that with sampling.allowBiased: true"),
		Entry("another word for sharedPrompt", environments("groupSize: 8, sampling: {maxTokens: 16, sharedPrompt: Group}"), "spec.environments[0].sampling.sharedPrompt", "must be of type boolean"),
		Entry("more retries than are numbered", environments("groupSize: 8, retries: 64, sampling: {maxTokens: 16}"), "spec.environments[0].retries", "less than or equal to 63"),
		Entry("more turns than are numbered", environments("groupSize: 8, limits: {turns: 2049}, sampling: {maxTokens: 16}"), "spec.environments[0].limits.turns", "less than or equal to 2048"),
		Entry("no maxTokens", environments("groupSize: 8"), "spec.environments[0]", "sampling.maxTokens is needed"),
		Entry("minMembers above the group", environments("groupSize: 8, minMembers: 9, sampling: {maxTokens: 16}"), "spec.environments[0]", "lower minMembers or raise groupSize"),
		Entry("another word for onUnavailable", environments("groupSize: 8, onUnavailable: Fail, sampling: {maxTokens: 16}"), "spec.environments[0].onUnavailable", `supported values: "Wait", "Skip"`),
		Entry("Skip of the only environment", environments("groupSize: 8, onUnavailable: Skip, sampling: {maxTokens: 16}"), "spec.environments", "trains on the other environments, but this is the only one"),
		Entry("name of an environment", "spec: {environments: [{name: Org/Name, groupSize: 8, sampling: {maxTokens: 16}}]}", "spec.environments[0].name", "it keys metrics"),
		Entry("same environment twice", "spec: {environments: [{name: a, groupSize: 8, sampling: {maxTokens: 16}}, {name: a, groupSize: 8, sampling: {maxTokens: 16}}]}", "spec.environments[1]", "Duplicate value"),
		Entry("weights for some", "spec: {environments: [{name: a, weight: 1, groupSize: 8, sampling: {maxTokens: 16}}, {name: b, groupSize: 8, sampling: {maxTokens: 16}}]}", "spec.environments", "add the missing ones or remove them all"),
		Entry("epochs with weights", "spec: {environments: [{name: a, weight: 1, groupSize: 8, sampling: {maxTokens: 16}}], algorithm: {steps: null, epochs: 3}}", "spec", "give algorithm.steps, or remove the weights"),
		Entry("environments without algorithm", "spec: {algorithm: null}", "spec", "give both to train, or neither and list evaluation.environments"),
		Entry("algorithm without environments", "spec: {environments: null}", "spec", "give both to train, or neither and list evaluation.environments"),
		Entry("nothing to do", "spec: {algorithm: null, environments: null, evaluation: null}", "spec", "without algorithm the run only evaluates and needs evaluation.environments"),
		Entry("evaluation elsewhere without maxTokens", "spec: {evaluation: {environments: [{name: other}]}}", "spec", "evaluation.environments[].sampling.maxTokens is needed"),
		Entry("passAt above the samples", "spec: {evaluation: {environments: [{name: arithmetic, passAt: [4]}]}}", "spec.evaluation.environments[0]", "raise samplesPerTask or remove the value"),
		Entry("a share of sampling above 1", "spec: {evaluation: {samplingShare: 20}}", "spec.evaluation.samplingShare", "should be less than or equal to 1"),
		Entry("a negative share of sampling", "spec: {evaluation: {samplingShare: -0.1}}", "spec.evaluation.samplingShare", "should be greater than or equal to 0"),
		Entry("allowBiased in evaluation", "spec: {evaluation: {environments: [{name: arithmetic, sampling: {allowBiased: true}}]}}", "spec.evaluation.environments[0]", "evaluation may sample with any settings: remove it"),
		Entry("reward bounds", environments("groupSize: 8, sampling: {maxTokens: 16}, reward: {min: 1, max: 0}"), "spec.environments[0].reward", "min must be below max"),
		Entry("unknown baseline", "spec: {algorithm: {advantage: {baseline: Mean}}}", "spec.algorithm.advantage.baseline", "supported values"),
		Entry("ddof", "spec: {algorithm: {advantage: {ddof: 2}}}", "spec.algorithm.advantage.ddof", "less than or equal to 1"),
		Entry("learning rate of 0", "spec: {algorithm: {optimizer: {learningRate: 0}}}", "spec.algorithm.optimizer.learningRate", "greater than 0"),
		Entry("learning rate in quotes", `spec: {algorithm: {optimizer: {learningRate: "4e-5"}}}`, "spec.algorithm.optimizer.learningRate", "number"),
		Entry("no state at all", "spec: {checkpoints: {everySteps: 0, rolling: {everySteps: 0}}}", "spec.checkpoints", "set one above 0"),
		Entry("rolling states that expire at once", "spec: {checkpoints: {rolling: {ttlSeconds: 60}}}", "spec.checkpoints.rolling.ttlSeconds", "greater than or equal to 600"),
		Entry("baseURL", "spec: {tinker: {baseURL: tinkersim}}", "spec.tinker.baseURL", "must begin with http:// or https://"),
		Entry("proxyURL with a password", "spec: {tinker: {proxyURL: 'http://u:p@proxy:3128'}}", "spec.tinker.proxyURL", "without a user name, a password"),
		Entry("caBundleConfigMapRef without a key", "spec: {tinker: {caBundleConfigMapRef: {name: authorities}}}", "spec.tinker.caBundleConfigMapRef.key", "Required"),
		Entry("clientCertificateSecretRef without a name", "spec: {tinker: {clientCertificateSecretRef: {}}}", "spec.tinker.clientCertificateSecretRef.name", "Required"),
		Entry("tokenizer of two places", "spec: {model: {tokenizer: {repository: o/m, url: 'https://h/t', sha256: "+strings.Repeat("a", 64)+"}}}", "spec.model.tokenizer", "give exactly one of repository and url"),
		Entry("tokenizer without a source", "spec: {model: {tokenizer: {}}}", "spec.model.tokenizer", "give exactly one of repository and url"),
		Entry("tokenizer at a URL without its digest", "spec: {model: {tokenizer: {url: 'https://h/t'}}}", "spec.model.tokenizer", "url needs sha256"),
		Entry("revision of a URL", "spec: {model: {tokenizer: {url: 'https://h/t', revision: main, sha256: "+strings.Repeat("a", 64)+"}}}", "spec.model.tokenizer", "give repository, or leave revision out"),
		Entry("tokenizer's repository without owner", "spec: {model: {tokenizer: {repository: qwen}}}", "spec.model.tokenizer.repository", "must be OWNER/NAME"),
		Entry("digest that is invalid", "spec: {model: {tokenizer: {repository: o/m, sha256: abc}}}", "spec.model.tokenizer.sha256", "64 hexadecimal digits"),
		Entry("no key", "spec: {tinker: {apiKeySecretRef: null}}", "spec.tinker.apiKeySecretRef", "Required value"),
		Entry("negative workers", "spec: {rollouts: {workers: -1}}", "spec.rollouts.workers", "greater than or equal to 0"),
		Entry("artifacts of nothing", "spec: {artifacts: {}}", "spec.artifacts", "claimName"),
		Entry("artifacts at two places", "spec: {artifacts: {claimName: c, url: 's3://b'}}", "spec.artifacts", "give exactly one of claimName and url"),
		Entry("keys for a claim", "spec: {artifacts: {claimName: c, secretRef: {name: s}}}", "spec.artifacts", "secretRef has the keys of url's store"),
		Entry("too many transcripts", "spec: {artifacts: {claimName: c, transcriptGroups: 65}}", "spec.artifacts.transcriptGroups", "less than or equal to 64"),
		Entry("a store of a kind that is not built in", "spec: {artifacts: {url: 'ftp://b/p'}}", "spec.artifacts.url", "gs://BUCKET/PREFIX"),
		Entry("settings of a store that has none", "spec: {artifacts: {url: 'gs://b/p?a=b'}}", "spec.artifacts.url", "without them"),
		Entry("a typing error in the artifacts' URL", "spec: {artifacts: {url: 's3:/b/p'}}", "spec.artifacts.url", "url must be s3://BUCKET/PREFIX"),
		Entry("tracking by nothing", "spec: {tracking: {}}", "spec.tracking", "tracking names no service: give wandb"),
		Entry("tensorboard without artifacts", "spec: {tracking: {tensorboard: {}}}", "spec", "tracking.tensorboard needs artifacts"),
		Entry("a path in tensorboard's runName", "spec: {artifacts: {claimName: c}, tracking: {tensorboard: {runName: ../x}}}", "spec.tracking.tensorboard.runName", "runName is the name of a folder"),
		Entry("wandb without a project", "spec: {tracking: {wandb: {apiKeySecretRef: {name: w, key: k}}}}", "spec.tracking.wandb.project", "Required"),
		Entry("wandb without a key", "spec: {tracking: {wandb: {project: p}}}", "spec.tracking.wandb.apiKeySecretRef", "Required"),
		Entry("an entity in wandb's project", "spec: {tracking: {wandb: {project: team/p, apiKeySecretRef: {name: w, key: k}}}}", "spec.tracking.wandb.project", "the team belongs into entity"),
		Entry("a project in wandb's entity", "spec: {tracking: {wandb: {project: p, entity: team/p, apiKeySecretRef: {name: w, key: k}}}}", "spec.tracking.wandb.entity", "the project belongs into project"),
		Entry("a typing error in wandb's baseURL", "spec: {tracking: {wandb: {project: p, baseURL: 'api.wandb.ai', apiKeySecretRef: {name: w, key: k}}}}", "spec.tracking.wandb.baseURL", "must be http:// or https:// with a host"),
		Entry("a key in wandb's baseURL", "spec: {tracking: {wandb: {project: p, baseURL: 'https://api:KEY@api.wandb.ai', apiKeySecretRef: {name: w, key: k}}}}", "spec.tracking.wandb.baseURL", "the key belongs into apiKeySecretRef's Secret"),
		Entry("mlflow without an experiment", "spec: {tracking: {mlflow: {baseURL: 'http://mlflow'}}}", "spec.tracking.mlflow.experiment", "Required"),
		Entry("mlflow without an address", "spec: {tracking: {mlflow: {experiment: e}}}", "spec.tracking.mlflow.baseURL", "Required"),
		Entry("a typing error in mlflow's baseURL", "spec: {tracking: {mlflow: {experiment: e, baseURL: 'mlflow:5000'}}}", "spec.tracking.mlflow.baseURL", "must be http:// or https:// with a host"),
		Entry("a username of mlflow without a password", "spec: {tracking: {mlflow: {experiment: e, baseURL: 'http://mlflow', username: u}}}", "spec.tracking.mlflow", "give both, or tokenSecretRef"),
		Entry("a token and a password for mlflow", "spec: {tracking: {mlflow: {experiment: e, baseURL: 'http://mlflow', username: u, passwordSecretRef: {name: m, key: k}, tokenSecretRef: {name: m, key: k}}}}", "spec.tracking.mlflow", "remove tokenSecretRef, or username and passwordSecretRef"),
		Entry("a tag of mlflow that the operator sets", "spec: {tracking: {mlflow: {experiment: e, baseURL: 'http://mlflow', tags: {tinker-operator.uid: x}}}}", "spec.tracking.mlflow.tags", "do not begin with tinker-operator."),
		Entry("openReward without a key", "spec: {tracking: {openReward: {runName: r}}}", "spec.tracking.openReward.apiKeySecretRef", "Required"),
		Entry("a typing error in openReward's baseURL", "spec: {tracking: {openReward: {baseURL: 'openreward.ai', apiKeySecretRef: {name: o, key: k}}}}", "spec.tracking.openReward.baseURL", "must be http:// or https:// with a host"),
		Entry("a tag twice", "spec: {tracking: {wandb: {project: p, tags: [a, a], apiKeySecretRef: {name: w, key: k}}}}", "spec.tracking.wandb.tags", "Duplicate"),
		Entry("a budget without a limit", "spec: {budget: {}}", "spec.budget", "budget has no limit: give tokens, usd or activeSeconds"),
		Entry("a budget of 0 tokens", "spec: {artifacts: {claimName: c}, budget: {tokens: 0}}", "spec.budget.tokens", "greater than or equal to 1"),
		Entry("a budget of tokens without artifacts", "spec: {budget: {tokens: 1000}}", "spec", "budget.tokens and budget.usd need artifacts"),
		Entry("prices without dollars", "spec: {artifacts: {claimName: c}, budget: {tokens: 1, prices: [{model: m, promptUSDPerMillion: 1, sampledUSDPerMillion: 1}]}}", "spec.budget", "give usd, or remove prices"),
		Entry("a price below 0", "spec: {artifacts: {claimName: c}, budget: {usd: 1, prices: [{model: m, promptUSDPerMillion: -1, sampledUSDPerMillion: 1}]}}", "spec.budget.prices[0].promptUSDPerMillion", "greater than or equal to 0"),
		Entry("two prices of a model", "spec: {artifacts: {claimName: c}, budget: {usd: 1, prices: [{model: m, promptUSDPerMillion: 1, sampledUSDPerMillion: 1}, {model: m, promptUSDPerMillion: 1, sampledUSDPerMillion: 2}]}}", "spec.budget.prices[1]", "Duplicate"),
		Entry("volume of two kinds", "spec: {learner: {pod: {volumes: [{name: x, emptyDir: {}, configMap: {name: other}}]}}}", "spec.learner.pod.volumes[0]", "give exactly one of"),
	)
})

var _ = Describe("A bad RewardEnvironment", func() {
	DescribeTable("is refused, with the field and the repair",
		refuses(smallestEnvironment),
		Entry("no reward", "spec: {reward: null}", "spec", "dataset needs reward"),
		Entry("no dataset", "spec: {dataset: null}", "spec", "give dataset"),
		Entry("empty dataset", "spec: {dataset: {arithmetic: null}}", "spec.dataset", "arithmetic"),
		Entry("two datasets", "spec: {dataset: {countdown: {}}}", "spec.dataset", "give exactly one of arithmetic, countdown, huggingFace and jsonl"),
		Entry("jsonl without splits", "spec: {dataset: {arithmetic: null, jsonl: {configMapRef: {name: a}}}}", "spec.dataset", "jsonl needs splits"),
		Entry("jsonl in two places", "spec: {dataset: {arithmetic: null, jsonl: {claimName: a, url: 'https://h/f'}, splits: [{name: train}]}}", "spec.dataset.jsonl", "give exactly one of claimName, configMapRef and url"),
		Entry("a URL without a digest", "spec: {dataset: {arithmetic: null, jsonl: {url: 'https://h/f'}, splits: [{name: train}]}}", "spec.dataset", "need sha256"),
		Entry("a URL of files", "spec: {dataset: {arithmetic: null, jsonl: {url: 'file:///f'}, splits: [{name: train, sha256: '"+strings.Repeat("a", 64)+"'}]}}", "spec.dataset.jsonl.url", "http:// or https://"),
		Entry("a digest in capitals", "spec: {dataset: {arithmetic: null, jsonl: {claimName: a}, splits: [{name: train, sha256: ABC}]}}", "spec.dataset.splits[0].sha256", "64 hexadecimal digits"),
		Entry("a digest of generated tasks", "spec: {dataset: {splits: [{name: train, sha256: '"+strings.Repeat("a", 64)+"'}]}}", "spec.dataset", "sha256 is for files of jsonl"),
		Entry("two digests of one source", "spec: {dataset: {arithmetic: null, jsonl: {claimName: a}, splits: [{name: a, source: f, sha256: '"+strings.Repeat("a", 64)+"'}, {name: b, source: f, sha256: '"+strings.Repeat("b", 64)+"'}]}}", "spec.dataset", "two values of sha256"),
		Entry("a key of a ConfigMap", "spec: {dataset: {arithmetic: null, jsonl: {configMapRef: {name: a}}, splits: [{name: train, source: a/b}]}}", "spec.dataset", "must be a key of the ConfigMap"),
		Entry("a path out of a volume", "spec: {dataset: {arithmetic: null, jsonl: {claimName: a}, splits: [{name: train, source: a/../../b}]}}", "spec.dataset.splits[0].source", "without '.' and '..'"),
		Entry("a split of none", "spec: {dataset: {splits: [{name: train, of: all}]}}", "spec.dataset", "must name another split of this list"),
		Entry("a split with two bases", "spec: {dataset: {splits: [{name: a}, {name: b, of: a, source: train}]}}", "spec.dataset.splits[1]", "not both"),
		Entry("a split of nothing", "spec: {dataset: {splits: [{name: a, take: 0}]}}", "spec.dataset.splits[0].take", "greater than or equal to 1"),
		Entry("a negative skip", "spec: {dataset: {splits: [{name: a, skip: -1}]}}", "spec.dataset.splits[0].skip", "greater than or equal to 0"),
		Entry("a negative seed", "spec: {dataset: {splits: [{name: a, shuffleSeed: -1}]}}", "spec.dataset.splits[0].shuffleSeed", "greater than or equal to 0"),
		Entry("a repository's name", "spec: {dataset: {arithmetic: null, huggingFace: {repository: 'a/b/c'}}}", "spec.dataset.huggingFace.repository", "OWNER/NAME"),
		Entry("a hub without a scheme", "spec: {dataset: {arithmetic: null, huggingFace: {repository: a/b, baseURL: hub}}}", "spec.dataset.huggingFace.baseURL", "http:// or https://"),
		Entry("numbers in the wrong order", "spec: {dataset: {arithmetic: null, countdown: {minNumbers: 4, maxNumbers: 3}}}", "spec.dataset.countdown", "minNumbers must be at most maxNumbers"),
		Entry("an example without a reply", "spec: {dataset: {examples: [{prompt: a}]}}", "spec.dataset.examples[0].reply", "Required"),
		Entry("a column without a name", "spec: {dataset: {fields: {answer: ''}}}", "spec.dataset.fields", "columns 1 to 256"),
		Entry("empty reward", "spec: {reward: {exactMatch: null}}", "spec.reward", "give exactly one of exactMatch, regex, jsonSchema"),
		Entry("two rewards", "spec: {reward: {math: {}}}", "spec.reward", "give exactly one of exactMatch, regex, jsonSchema"),
		Entry("a reward beside a sum", "spec: {reward: {weighted: [{name: a, weight: 1, math: {}}]}}", "spec.reward", "and weighted"),
		Entry("a part of replies", "spec: {reward: {exactMatch: {part: Half}}}", "spec.reward.exactMatch.part", "supported values"),
		Entry("integers that are normalized", "spec: {reward: {exactMatch: {normalize: [Case]}}}", "spec.reward.exactMatch", "normalize needs part Text"),
		Entry("a normalization", "spec: {reward: {exactMatch: {part: Text, normalize: [Verbs]}}}", "spec.reward.exactMatch.normalize", "supported values"),
		Entry("a regular expression", "spec: {reward: {exactMatch: null, regex: {pattern: 'a(b'}}}", "spec.reward.regex.pattern", "missing closing", "correct the regular expression"),
		Entry("no regular expression", "spec: {reward: {exactMatch: null, regex: {}}}", "spec.reward.regex.pattern", "Required"),
		Entry("a schema that is a text", "spec: {reward: {exactMatch: null, jsonSchema: {schema: object}}}", "spec.reward.jsonSchema.schema", "must be of type object"),
		Entry("an empty expression", "spec: {reward: {exactMatch: null, expression: ''}}", "spec.reward.expression", "at least 1"),
		Entry("an expression beyond bounds", "spec: {reward: {exactMatch: null, expression: '"+strings.Repeat("a", 4097)+"'}}", "spec.reward.expression", "4096"),
		Entry("a rubric without a judge", "spec: {reward: {exactMatch: null, rubric: {}}}", "spec.reward.rubric.judge", "Required"),
		Entry("a judge without an API", "spec: {reward: {exactMatch: null, rubric: {judge: {}}}}", "spec.reward.rubric.judge", "give exactly one of tinker and openAI"),
		Entry("two judges", "spec: {reward: {exactMatch: null, rubric: {judge: {tinker: {model: m}, openAI: {baseURL: 'http://a', model: m}}}}}", "spec.reward.rubric.judge", "give exactly one of tinker and openAI"),
		Entry("a judge of nothing", "spec: {reward: {exactMatch: null, rubric: {judge: {tinker: {renderer: qwen3}}}}}", "spec.reward.rubric.judge.tinker", "give exactly one of model and checkpoint"),
		Entry("a judge of a state", "spec: {reward: {exactMatch: null, rubric: {judge: {tinker: {checkpoint: 'tinker://a/weights/b'}}}}}", "spec.reward.rubric.judge.tinker.checkpoint", "must be sampler weights"),
		Entry("a judge whose baseURL is not a URL", "spec: {reward: {exactMatch: null, rubric: {judge: {openAI: {baseURL: 'api.openai.com', model: m}}}}}", "spec.reward.rubric.judge.openAI.baseURL", "must begin with http"),
		Entry("a judge's key without its name", "spec: {reward: {exactMatch: null, rubric: {judge: {openAI: {baseURL: 'http://a', model: m, apiKeySecretRef: {key: k}}}}}}", "spec.reward.rubric.judge.openAI.apiKeySecretRef.name", "Required"),
		Entry("a scoring", "spec: {reward: {exactMatch: null, rubric: {scoring: AllAtOnce, judge: {tinker: {model: m}}}}}", "spec.reward.rubric.scoring", "PassRate", "PerRubric", "Score"),
		Entry("a coverage above 1", "spec: {reward: {exactMatch: null, rubric: {minCoverage: 1.5, judge: {tinker: {model: m}}}}}", "spec.reward.rubric.minCoverage", "less than or equal to 1"),
		Entry("a judge without tokens", "spec: {reward: {exactMatch: null, rubric: {judge: {tinker: {model: m}, sampling: {maxTokens: 0}}}}}", "spec.reward.rubric.judge.sampling.maxTokens", "greater than or equal to 1"),
		Entry("a judge without time", "spec: {reward: {exactMatch: null, rubric: {judge: {tinker: {model: m}, timeoutSeconds: 0}}}}", "spec.reward.rubric.judge.timeoutSeconds", "greater than or equal to 1"),
		Entry("a rubric beside another reward", "spec: {reward: {rubric: {judge: {tinker: {model: m}}}}}", "spec.reward", "rubric", "weighted"),
		Entry("two judges in a sum", "spec: {reward: {exactMatch: null, weighted: [{name: a, weight: 1, rubric: {judge: {}}}]}}", "spec.reward.weighted[0].rubric.judge", "give exactly one of tinker and openAI"),
		Entry("a sum of nothing", "spec: {reward: {exactMatch: null, weighted: []}}", "spec.reward.weighted", "at least 1"),
		Entry("a sum without a reward", "spec: {reward: {exactMatch: null, weighted: [{name: a, weight: 1}]}}", "spec.reward.weighted[0]", "beside name and weight"),
		Entry("a sum with a name twice", "spec: {reward: {exactMatch: null, weighted: [{name: a, weight: 1, math: {}}, {name: a, weight: 1, gsm8k: {}}]}}", "spec.reward.weighted[1]", "Duplicate"),
		Entry("a sum with a weight of 0", "spec: {reward: {exactMatch: null, weighted: [{name: a, weight: 0, math: {}}]}}", "spec.reward.weighted[0].weight", "remove the entry"),
		Entry("a sum with a name in capitals", "spec: {reward: {exactMatch: null, weighted: [{name: A, weight: 1, math: {}}]}}", "spec.reward.weighted[0].name", "metrics are named after it"),
		Entry("a regular expression in a sum", "spec: {reward: {exactMatch: null, weighted: [{name: a, weight: 1, regex: {pattern: '*'}}]}}", "spec.reward.weighted[0].regex.pattern", "missing argument to repetition"),
		Entry("a server beside a data set", "spec: {ors: {url: 'http://sums'}}", "spec", "give exactly one of dataset and ors"),
		Entry("a reward of a server", "spec: {dataset: null, ors: {url: 'http://sums'}}", "spec", "has its own rewards"),
		Entry("solvers on a server", "spec: {dataset: null, reward: null, ors: {url: 'http://sums'}, interaction: {solverJudge: {}}}", "spec", "episodes of an ors server are tool use"),
		Entry("a server of nothing", "spec: {dataset: null, reward: null, ors: {}}", "spec.ors", "give exactly one of name", "url", "server"),
		Entry("a server with an odd URL", "spec: {dataset: null, reward: null, ors: {url: 'sums:8080'}}", "spec.ors.url", "must begin with http"),
		Entry("a hosted environment without its owner", "spec: {dataset: null, reward: null, ors: {name: WhoDunIt}}", "spec.ors.name", "OWNER/NAME"),
		Entry("a hosted environment twice named", "spec: {dataset: null, reward: null, ors: {name: A/B, environment: c}}", "spec.ors", "OWNER/NAME@VARIANT"),
		Entry("a hosting service of a URL", "spec: {dataset: null, reward: null, ors: {url: 'http://a', baseURL: 'http://b'}}", "spec.ors", "give url for a server of your own"),
		Entry("a server's claim of resources that no pod has", "spec: {dataset: null, reward: null, ors: {server: {image: a, resources: {claims: [{name: gpu}]}}}}", "spec.ors.server.resources", "remove it, and request devices by limits"),
		Entry("a port of root", "spec: {dataset: null, reward: null, ors: {server: {image: a, port: 80}}}", "spec.ors.server.port", "greater than or equal to 1024"),
		Entry("the worker's port", "spec: {dataset: null, reward: null, ors: {server: {image: a, port: 8081}}}", "spec.ors.server.port", "port 8081 is that of the worker"),
		Entry("a way of delivery", "spec: {dataset: null, reward: null, ors: {url: 'http://a', secretDelivery: Mail}}", "spec.ors.secretDelivery", "supported values"),
		Entry("shared that is not a boolean", "spec: {dataset: null, reward: null, ors: {server: {image: a, shared: Once}}}", "spec.ors.server.shared", "boolean"),
		Entry("a shared server of another", "spec: {dataset: null, reward: null, ors: {url: 'http://a', server: {image: a, shared: true}}}", "spec.ors", "give exactly one of name"),
		Entry("allowed hosts in the body", "spec: {dataset: null, reward: null, ors: {url: 'http://a', secretDelivery: Body, secrets: [{name: A, secretKeyRef: {name: s, key: k}, allowedHosts: [b.test]}]}}", "spec.ors", "set secretDelivery to Header or Both"),
		Entry("a secret without a key", "spec: {dataset: null, reward: null, ors: {url: 'http://a', secrets: [{name: A}]}}", "spec.ors.secrets[0].secretKeyRef", "Required"),
		Entry("interaction of nothing", "spec: {interaction: {}}", "spec.interaction", "toolUse"),
		Entry("two interactions", "spec: {interaction: {toolUse: {}, selfRefine: {}}}", "spec.interaction", "give exactly one of toolUse, solverJudge and selfRefine"),
		Entry("no solvers", "spec: {interaction: {solverJudge: {solvers: 0}}}", "spec.interaction.solverJudge.solvers", "greater than or equal to 1"),
		Entry("a solver prompt without the task", "spec: {interaction: {solverJudge: {solverPrompt: Solve it.}}}", "spec.interaction.solverJudge.solverPrompt", "must contain $(prompt)"),
		Entry("a judge prompt without solutions", "spec: {interaction: {solverJudge: {judgePrompt: $(prompt)}}}", "spec.interaction.solverJudge.judgePrompt", "must contain $(solutions)"),
		Entry("an answer pattern that does not compile", "spec: {interaction: {solverJudge: {answerPattern: '(a'}}}", "spec.interaction.solverJudge.answerPattern", "correct the regular expression"),
		Entry("an answer pattern without a group", "spec: {interaction: {solverJudge: {answerPattern: 'a+'}}}", "spec.interaction.solverJudge.answerPattern", "needs a group"),
		Entry("a critique of nothing", "spec: {interaction: {selfRefine: {critiquePrompt: $(prompt)}}}", "spec.interaction.selfRefine.critiquePrompt", "must contain $(draft)"),
		Entry("a revision without critique", "spec: {interaction: {selfRefine: {revisionPrompt: $(draft)}}}", "spec.interaction.selfRefine.revisionPrompt", "must contain $(critique)"),
		Entry("parse errors below none", "spec: {interaction: {toolUse: {parseErrors: {maxConsecutive: -1}}}}", "spec.interaction.toolUse.parseErrors.maxConsecutive", "greater than or equal to 0"),
		Entry("a dialect of calls", "spec: {interaction: {toolUse: {dialect: XML}}}", "spec.interaction.toolUse.dialect", "supported values"),
		Entry("what training makes of parse errors", "spec: {interaction: {toolUse: {parseErrors: {train: Drop}}}}", "spec.interaction.toolUse.parseErrors.train", "supported values"),
		Entry("operands", "spec: {dataset: {arithmetic: {maxOperand: 100000}}}", "spec.dataset.arithmetic.maxOperand", "less than or equal to 9999"),
		Entry("long name", "metadata: {name: "+strings.Repeat("a", 64)+"}", "metadata.name must have at most 63 characters", "rename it"),
	)
})

var _ = Describe("A started run", func() {
	DescribeTable("keeps what decides the weights",
		func(field string, change func(*v1alpha1.TrainingRun)) {
			w := emptyEnv()
			run := w.create()
			change(run)
			Expect(kube.Update(context.Background(), run)).To(Succeed(), "before the start all may change")
			now := metav1.Now()
			run.Status.StartTime = &now
			Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
			fresh := w.newRun()
			fresh.ResourceVersion = run.ResourceVersion
			run.Spec, fresh.Spec = fresh.Spec, run.Spec
			err := kube.Update(context.Background(), run)
			Expect(err).To(MatchError(ContainSubstring(field + ": Forbidden: ")))
			Expect(err).To(MatchError(ContainSubstring("create another run")))
		},
		Entry("model", "spec.model", func(run *v1alpha1.TrainingRun) { run.Spec.Model.Name = "other" }),
		Entry("endpoint", "spec.tinker.baseURL", func(run *v1alpha1.TrainingRun) { run.Spec.Tinker.BaseURL = "http://other" }),
		Entry("endpoint, unset", "spec.tinker.baseURL", func(run *v1alpha1.TrainingRun) { run.Spec.Tinker.BaseURL = "" }),
		Entry("environments", "spec.environments", func(run *v1alpha1.TrainingRun) { run.Spec.Environments[0].GroupSize = 4 }),
		Entry("shared prompts", "spec.environments", func(run *v1alpha1.TrainingRun) { run.Spec.Environments[0].Sampling.SharedPrompt = new(true) }),
		Entry("algorithm", "spec.algorithm", func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.TasksPerStep = 4 }),
		Entry("initFrom", "spec.initFrom", func(run *v1alpha1.TrainingRun) {
			run.Spec.InitFrom = &v1alpha1.InitFrom{Checkpoint: "tinker://a/weights/b", Optimizer: v1alpha1.OptimizerReset}
		}),
	)

	DescribeTable("may change what decides the weights until that is fixed",
		func(change func(*v1alpha1.TrainingRun)) {
			w := emptyEnv()
			run := w.create()
			now := metav1.Now()
			run.Status.StartTime, run.Status.SettingsFixed = &now, new(false)
			Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
			change(run)
			Expect(kube.Update(context.Background(), run)).To(Succeed())
			run.Status.SettingsFixed = new(true)
			Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
			fresh := w.newRun()
			fresh.ResourceVersion = run.ResourceVersion
			run.Spec = fresh.Spec
			Expect(kube.Update(context.Background(), run)).To(MatchError(ContainSubstring("once a step is committed")))
		},
		Entry("model", func(run *v1alpha1.TrainingRun) { run.Spec.Model.Name = "other" }),
		Entry("endpoint", func(run *v1alpha1.TrainingRun) { run.Spec.Tinker.BaseURL = "http://other" }),
		Entry("environments", func(run *v1alpha1.TrainingRun) { run.Spec.Environments[0].GroupSize = 4 }),
		Entry("algorithm", func(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.Seed = new(int64(5)) }),
		Entry("initFrom", func(run *v1alpha1.TrainingRun) {
			run.Spec.InitFrom = &v1alpha1.InitFrom{Checkpoint: "tinker://a/weights/b", Optimizer: v1alpha1.OptimizerReset}
		}),
	)

	It("takes changes of all else", func() {
		w := emptyEnv()
		run := w.create()
		now := metav1.Now()
		run.Status.StartTime = &now
		Expect(kube.Status().Update(context.Background(), run)).To(Succeed())
		run.Spec.Rollouts.Workers = new(int32(9))
		run.Spec.Checkpoints.EverySteps = new(int64(5))
		run.Spec.Evaluation = nil
		run.Spec.Suspend = new(true)
		run.Spec.FailurePolicy.MaxRestarts = new(int32(9))
		run.Spec.Tinker.APIKeySecretRef.Name = "other"
		run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "x"}
		Expect(kube.Update(context.Background(), run)).To(Succeed())
	})
})

var _ = Describe("kubectl", func() {
	It("applies the examples twice, the second time without a change, and diffs quietly", func() {
		w := emptyEnv()
		smallest := filepath.Join(GinkgoT().TempDir(), "smallest.yaml")
		Expect(os.WriteFile(smallest, []byte(smallestEnvironment+"---"+smallestRun), 0o600)).To(Succeed())
		for _, file := range []string{smallest, filepath.Join("testdata", "everything.yaml"), filepath.Join("..", "..", "config", "samples", "arithmetic.yaml"), filepath.Join("..", "..", "config", "samples", "own-data.yaml"), filepath.Join("..", "..", "config", "samples", "rlvr.yaml")} {
			output, err := kubectl(w.namespace, "apply", "-f", file)
			Expect(err).NotTo(HaveOccurred(), output)
			output, err = kubectl(w.namespace, "apply", "-f", file)
			Expect(err).NotTo(HaveOccurred(), output)
			for line := range strings.SplitSeq(strings.TrimSpace(output), "\n") {
				Expect(line).To(HaveSuffix(" unchanged"), file)
			}
			output, err = kubectl(w.namespace, "diff", "-f", file)
			Expect(err).NotTo(HaveOccurred(), output)
			output, err = kubectl(w.namespace, "apply", "--server-side", "--force-conflicts", "-f", file)
			Expect(err).NotTo(HaveOccurred(), output)
		}
	})

	It("may apply every sample, those for hosted services and with servers too", func() {
		w := emptyEnv()
		var files []string
		for _, pattern := range []string{"*.yaml", "hosted/*.yaml", "self-hosted/*.yaml"} {
			found, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", pattern))
			Expect(err).NotTo(HaveOccurred())
			Expect(found).NotTo(BeEmpty(), pattern)
			files = append(files, found...)
		}
		for _, file := range files {
			output, err := kubectl(w.namespace, "apply", "--dry-run=server", "-f", file)
			Expect(err).NotTo(HaveOccurred(), output)
			Expect(output).To(ContainSubstring("trainingrun.rl.tinker-operator.dev/"), file)
			Expect(output).NotTo(ContainSubstring("Warning"), file)
		}
	})

	It("shows the columns that people read", func() {
		w := newEnv()
		run, first := w.startedRun()
		w.learners.answer(first.ip, heartbeatAt(20))
		w.eventually(run, func(g Gomega) { g.Expect(run.Status.Progress).To(Equal("20/60")) })
		output, err := kubectl(w.namespace, "get", "trun")
		Expect(err).NotTo(HaveOccurred(), output)
		lines := strings.Split(strings.TrimSpace(output), "\n")
		Expect(strings.Fields(lines[0])).To(Equal([]string{"NAME", "STATE", "STEP", "REWARD", "PASS@1", "CHECKPOINT", "RESTARTS", "AGE"}))
		Expect(strings.Fields(lines[1])[:7]).To(Equal([]string{"arithmetic", "Training", "20/60", "0.7125", "0.7812", "20", "0"}))
		output, err = kubectl(w.namespace, "get", "trainingruns", "-o", "wide")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(strings.Fields(output)).To(ContainElements("MODEL", "WORKERS", "LINEAGE", "tinkersim/byte-136k", "ababababab"))
		output, err = kubectl(w.namespace, "get", "renv")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(strings.Fields(output)[:7]).To(Equal([]string{"NAME", "READY", "TASKS", "AGE", "arithmetic", "True", "1000"}))
		output, err = kubectl(w.namespace, "get", "tinker", "-o", "name")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(strings.Fields(output)).To(ConsistOf("trainingrun.rl.tinker-operator.dev/arithmetic", "rewardenvironment.rl.tinker-operator.dev/arithmetic"))
	})

	It("explains every field", func() {
		for _, kind := range []string{"trainingruns", "rewardenvironments"} {
			output, err := kubectl("default", "explain", kind, "--recursive", "--output=plaintext-openapiv2")
			Expect(err).NotTo(HaveOccurred(), output)
			Expect(output).NotTo(BeEmpty())
		}
		output, err := kubectl("default", "explain", "trun.spec.algorithm.lag")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(output).To(ContainSubstring("how many steps the policy that samples is behind"))
	})
})
