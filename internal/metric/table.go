// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package metric

import "slices"

// Units of several metrics.
const (
	count    = "count"
	share    = "share"
	tokens   = "tokens"
	seconds  = "seconds"
	nats     = "nats a token"
	yourUnit = "as you define it"
)

// Descriptions describes all metrics. If several descriptions match a name, the first counts.
var Descriptions = slices.Concat(ofRewards, ofGroups, ofEpisodes, ofEvaluations, ofUpdates, ofBatches, ofTime,
	ofYourOwn)

var ofRewards = []Description{
	{
		"env/ENV/reward/total", "reward",
		"Mean reward of the episodes that count.",
		"Rises.",
		"Stays flat: see by_group/frac_mixed. Rises while test/pass@1 falls: the policy games the reward.",
	},
	{
		"env/ENV/reward/PART", "reward",
		"Mean of one part of a weighted reward, before its weight.",
		"Rises for the parts that you care about.", "One part rises at the cost of the others.",
	},
	{
		"env/ENV/correct", share,
		"Share of episodes whose answer is right.",
		"Rises.", "Stays at 0 or 1: no task teaches anything.",
	},
	{
		"env/ENV/answered", share,
		"Share of episodes with an answer that the grader can read.",
		"Near 1.", "Low: the prompt does not ask for the format, or maxTokens cuts the reply.",
	},
	{
		"env/ENV/truncated", share,
		"Share of episodes whose reply maxTokens cut.",
		"Near 0.", "Above 0.1: raise sampling.maxTokens.",
	},
	{"env/ENV/answer/correct", share, "Share of graded episodes whose answer is right.", "Rises.", ""},
	{"env/ENV/answer/wrong", share, "Share of graded episodes whose answer is wrong.", "Falls.", ""},
	{
		"env/ENV/answer/none", share,
		"Share of graded episodes without an answer that the grader can read.",
		"Near 0.", "",
	},
	{
		"env/ENV/answer/truncated", share,
		"Share of graded episodes whose reply was cut before an answer.",
		"Near 0.", "Above 0.1: raise sampling.maxTokens.",
	},
	{
		"env/ENV/teacher_kl", nats,
		"teacher_kl of one environment.",
		"Falls towards 0.", "",
	},
	{
		"teacher_kl", nats,
		"Mean of log p_policy - log p_teacher over the sampled tokens of all environments with a teacher.",
		"Falls towards 0.", "Rises: lower the learning rate or raise the teacher's coefficient.",
	},
}

var ofGroups = []Description{
	{
		"env/ENV/by_group/frac_mixed", share,
		"Share of groups whose episodes have different rewards, and so a gradient.",
		"0.3 to 0.9.", "Near 0: tasks are too hard or too easy, or the reward does not tell replies apart.",
	},
	{
		"env/ENV/by_group/frac_all_good", share,
		"Share of groups whose episodes all have the same reward of at least 0.5.",
		"Below 0.5.", "Near 1: tasks are too easy.",
	},
	{
		"env/ENV/by_group/frac_all_bad", share,
		"Share of groups whose episodes all have the same reward below 0.5.",
		"Below 0.5.", "Near 1: tasks are too hard, or the reward never passes.",
	},
	{
		"env/ENV/ROLE/by_group/frac_mixed", share,
		"by_group/frac_mixed of the trajectories of one role.",
		"0.3 to 0.9.", "",
	},
	{"env/ENV/ROLE/by_group/frac_all_good", share, "by_group/frac_all_good of the trajectories of one role.", "", ""},
	{"env/ENV/ROLE/by_group/frac_all_bad", share, "by_group/frac_all_bad of the trajectories of one role.", "", ""},
}

var ofEpisodes = []Description{
	{
		"env/ENV/fault_ratio", share,
		"Share of episodes that a fault of an environment or of a judge left out.",
		"0.", "Above 0.05: kubectl tinker why quotes the newest fault.",
	},
	{
		"env/ENV/deadline_ratio", share,
		"Share of episodes that a deadline or a limit left out.",
		"0.", "Above 0.05: raise limits.episodeSeconds, or find the slow tool.",
	},
	{
		"env/ENV/stop/length", share,
		"Share of episodes that ended because maxTokens cut the reply.",
		"Near 0.", "Above 0.1: raise sampling.maxTokens.",
	},
	{
		"env/ENV/stop/malformed", share,
		"Share of episodes that ended because too many replies in a row broke the format of tool calls.",
		"Near 0.", "Above 0.1: check model.renderer and the tools' descriptions.",
	},
	{
		"env/ENV/stop/REASON", share,
		"Share of episodes that ended for this reason.",
		"Most end with stop or as the environment ends them.", "",
	},
	{"env/ENV/total_episodes", count, "Episodes that count.", "", ""},
	{"env/ENV/total_turns", count, "Requests for a reply in these episodes.", "", ""},
	{"env/ENV/total_ac_tokens", tokens, "Sampled tokens of these episodes.", "", ""},
	{"env/ENV/total_ob_tokens", tokens, "Prompt tokens of these episodes.", "", ""},
	{
		"env/ENV/ac_tokens_per_turn", tokens,
		"Mean sampled tokens of a turn.",
		"Settles.", "Falls to a few: the policy gives up. Grows to maxTokens: it rambles.",
	},
	{"env/ENV/ob_tokens_per_turn", tokens, "Mean prompt tokens of a turn.", "", ""},
	{"env/ENV/turns_per_episode", count, "Mean turns of an episode.", "", ""},
	{
		"env/ENV/segments_per_episode", count,
		"Mean segments of an episode, which are each trained on as one sequence.",
		"1 for each conversation.",
		"As many as turns: the chat template rewrites earlier turns.",
	},
	{"env/ENV/ROLE/reward/total", "reward", "Mean reward of the trajectories of one role.", "Rises for each role.", ""},
	{"env/ENV/ROLE/stop/REASON", share, "Share of the role's trajectories that ended for this reason.", "", ""},
	{"env/ENV/ROLE/total_trajectories", count, "Trajectories of one role.", "", ""},
	{"env/ENV/ROLE/segments_per_trajectory", count, "Mean segments of the role's trajectories.", "", ""},
}

var ofEvaluations = []Description{
	{
		"test/pass@K", share,
		"Estimated share of held-out tasks that at least one of K samples solves, for environments that all have " +
			"this K. The unbiased estimator of Chen et al., 2021.",
		"Rises.", "Falls while the training reward rises: the run overfits or games the reward.",
	},
	{"test/ENV/pass@K", share, "pass@K of one environment.", "Rises.", ""},
	{"test/solved@K", share, "Share of held-out tasks that at least one of all K samples solved.", "Rises.", ""},
	{"test/ENV/solved@K", share, "solved@K of one environment.", "Rises.", ""},
	{"test/tasks", count, "Tasks of the evaluation.", "", ""},
	{
		"test/tasks_left_out", count,
		"Tasks without a usable sample.",
		"0.", "",
	},
	{"test/ENV/tasks", count, "Tasks of one environment.", "", ""},
	{"test/ENV/tasks_left_out", count, "Tasks of one environment without a usable sample.", "0.", ""},
	{
		"test/nll", nats,
		"Mean negative log-likelihood of the weighted tokens of all held-out rows.",
		"Falls.", "Rises while train_mean_nll falls: the run overfits.",
	},
	{"test/SPLIT/nll", nats, "test/nll of one held-out split.", "Falls.", ""},
	{"test/rows", count, "Held-out rows that were measured.", "", ""},
	{"test/rows_left_out", count, "Held-out rows that cannot be rendered or have no weighted token.", "0.", ""},
}

var ofUpdates = []Description{
	{
		"loss:REDUCTION", "as the endpoint reports it",
		"Loss of the step. The sum of a policy gradient's loss has no meaning by itself.",
		"Finite.", "Not a number: the run has diverged.",
	},
	{
		"train_mean_nll", nats,
		"Mean negative log-likelihood of the weighted tokens of a supervised step, before its update.",
		"Falls.", "",
	},
	{
		"unclipped_grad_l2:REDUCTION", "norm",
		"Norm of the gradient before it is clipped.",
		"Settles.", "Above algorithm.optimizer.gradClipNorm at each step: lower the learning rate.",
	},
	{"optim/lr", "rate", "Learning rate of the step.", "", ""},
	{
		"optim/kl_sample_train_v1", nats,
		"Mean of log p_sampler - log p_trainer over the sampled tokens.",
		"Near 0 without a lag.", "Above 0.05: lower the lag or the learning rate.",
	},
	{
		"optim/kl_sample_train_v2", nats,
		"Half the mean square of log p_sampler - log p_trainer over the sampled tokens.",
		"Near 0 without a lag.", "Above 0.05: lower the lag or the learning rate.",
	},
	{
		"optim/entropy", nats,
		"Mean of -log p_sampler over the sampled tokens.",
		"Falls slowly.",
		"Near 0: the policy repeats itself, and groups have no different rewards. Rises: the learning rate is too " +
			"high.",
	},
	{
		"kl_policy_base", nats,
		"Mean of log p_policy - log p_reference over the sampled tokens, with algorithm.kl.",
		"Grows slowly.", "Grows without bound: raise algorithm.kl.coefficient.",
	},
}

var ofBatches = []Description{
	{"batch/groups", count, "Groups of the batch.", "", ""},
	{
		"batch/groups_usable", count,
		"Groups that are trained on.",
		"Near batch/groups.", "Near 0: the step has hardly a gradient.",
	},
	{
		"batch/groups_constant", count,
		"Groups whose episodes all have the same reward.",
		"Few.", "Most: see by_group/frac_mixed.",
	},
	{"batch/groups_below_floor", count, "Groups with fewer usable members than minMembers.", "0.", ""},
	{"batch/groups_environment_fault", count, "Groups that faults of an environment left out.", "0.", ""},
	{"batch/groups_judge_fault", count, "Groups that faults of a judge left out.", "0.", ""},
	{"batch/groups_deadline", count, "Groups that a deadline left out.", "0.", ""},
	{"batch/groups_invalid_tokens", count, "Groups that the endpoint refuses.", "0.", ""},
	{"batch/members", count, "Episodes of the batch.", "", ""},
	{"batch/members_left_out", count, "Episodes that are not trained on because of a fault or a limit.", "0.", ""},
	{"batch/retries", count, "Tries of episodes after a fault.", "0.", "Many: an environment or a judge is unstable."},
	{"batch/prompt_tokens", tokens, "Prompt tokens of the batch.", "", ""},
	{"batch/sampled_tokens", tokens, "Sampled tokens of the batch.", "", ""},
	{"batch/reference_tokens", tokens, "Tokens that the reference of algorithm.kl reads.", "", ""},
	{"batch/judge_calls", count, "Calls of judges.", "", ""},
	{"batch/judge_errors", count, "Calls of judges that failed.", "0.", ""},
	{
		"batch/judge_unreadable", count,
		"Replies of judges without a verdict that can be read.",
		"0.", "Many: raise the judge's maxTokens, or ask it for a shorter answer.",
	},
	{"batch/judge_prompt_tokens", tokens, "Prompt tokens of judges.", "", ""},
	{"batch/judge_sampled_tokens", tokens, "Sampled tokens of judges.", "", ""},
	{
		"batch/lag", count,
		"Steps between the version that sampled the batch and the version that it trains.",
		"At most algorithm.lag.", "",
	},
	{"batch/rows", count, "Rows that a supervised step trains on.", "supervised.batchSize.", ""},
	{"batch/rows_left_out", count, "Rows that a supervised step leaves out.", "0.", ""},
	{
		"batch/rows_no_weight", count,
		"Rows without a token that is trained on.",
		"0.", "Above 0: see supervised.trainOn.",
	},
	{"batch/rows_not_rendered", count, "Rows that the model's format cannot express.", "0.", ""},
	{
		"batch/rows_too_long", count,
		"Rows with more tokens than the model's context.",
		"0.", "Above 0: set supervised.maxTokens, which cuts rows.",
	},
	{"batch/rows_empty", count, "Rows without text.", "0.", ""},
	{"batch/rows_filtered", count, "Rows that supervised.episodes leaves out.", "", ""},
	{"batch/rows_refused", count, "Rows that the endpoint refuses.", "0.", ""},
	{"batch/tokens", tokens, "Tokens that a supervised step reads.", "", ""},
	{"batch/weighted_tokens", tokens, "Tokens that a supervised step trains on.", "", ""},
	{"progress/batch", count, "Number of the batch, from 0.", "", ""},
	{"progress/done_frac", share, "Share of the run's steps that are done.", "", ""},
}

var ofTime = []Description{
	{"time/total", seconds, "Seconds that the step took.", "", ""},
	{
		"time/sampling", seconds,
		"Seconds that the learner waited for the batch.",
		"Most of time/total without a lag.", "Grows: the endpoint or an environment is slow, or workers are few.",
	},
	{"time/train_step", seconds, "Seconds of forward_backward and optim_step.", "", ""},
	{"time/save_sampler", seconds, "Seconds until the new weights could sample.", "", ""},
	{"time/save_checkpoint", seconds, "Seconds until the state was saved and committed.", "", ""},
	{
		"sampled_tokens_per_second", "tokens a second",
		"Sampled tokens of the batch by time/total.",
		"Steady.", "Falls: see time/sampling.",
	},
}

var ofYourOwn = []Description{
	{
		"env/ENV/options_ignored", count,
		"Mean requests for an option that the gateway does not have, in the episodes with such requests.",
		"Absent.", "See ignored_NAME, and docs/agents.md.",
	},
	{
		"env/ENV/ignored_NAME", count,
		"Mean requests for the option NAME, in the episodes with such requests.",
		"Absent.", "",
	},
	{
		"env/ENV/overruled_NAME", count,
		"Mean requests for another sampling than the run's, in the episodes with such requests.",
		"", "",
	},
	{"env/ENV/NAME", yourUnit, "Mean of a metric that the environment or a reward function reports.", "", ""},
	{"NAME:REDUCTION", "as the endpoint reports it", "A metric of the endpoint.", "", ""},
}
