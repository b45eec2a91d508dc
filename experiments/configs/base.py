"""Every setting, with its meaning and unit.

An experiment is a file beside this one that changes a few of them; the command
line changes single ones: `--config.rollout.group_size=16`. The config is
locked: a name that is not here is an error.
"""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
  """The defaults, locked."""
  c = config_dict.ConfigDict()
  c.seed = 0  # of everything that is random

  c.policy = config_dict.ConfigDict()
  # Where the policy comes from: "shipped" (the warm-started tiny policy of this
  # package), "random" (needs warm_start.num_steps > 0 to be of any use), a
  # folder that a run has written (WORKDIR/policy), a Hugging Face folder
  # (config.json, safetensors, tokenizer.json), or a GGUF file (extra `gguf`).
  c.policy.source = "shipped"
  # Of a Hugging Face folder or GGUF file; unset = as its chat template says. A
  # base model has no template: name a Jinja file.
  c.policy.system_prompt = config_dict.placeholder(str)
  c.policy.chat_template = config_dict.placeholder(str)
  # True or False for templates that know `enable_thinking` (Qwen3). The three
  # are refused for policies of ours, which have a format already.
  c.policy.thinking = config_dict.placeholder(bool)
  c.policy.size = "tiny"  # of a random policy: a key of sizes.SIZES
  c.policy.vocab_size = 640  # of a random policy's tokenizer
  # What the backward pass computes again to save memory: "none", "dots" (all
  # but matrix products), "block" (each block), or "auto": the first that fits.
  c.policy.remat = "auto"
  # Of computation: "bfloat16" for a GPU. Masters and moments are float32.
  c.policy.dtype = "float32"
  # How the update walks over the layers: "scan" (short to compile), "unrolled"
  # (should save an eighth of the time on a GPU: see LOG.md).
  c.policy.layers = "scan"
  # Low-rank adapters in place of all parameters (leap_jax/lora.py): their rank,
  # 0 = all parameters; the scale is alpha / rank.
  c.policy.lora_rank = 0
  c.policy.lora_alpha = 32.0
  c.policy.lora_targets = (
    "query",
    "key",
    "value",
    "out",
    "gate",
    "up",
    "down",
  )

  c.problems = config_dict.ConfigDict()
  # "kernels": chains of operators (kernels_eval/problems/composer.py);
  # "functions": Python functions of lists, for transfer
  # (kernels_eval/functions/pipelines.py), which the shipped policy cannot
  # write: begin with a warm start, as functions_tiny.py does.
  c.problems.source = "kernels"
  c.problems.min_operators = 1
  c.problems.max_operators = 4
  c.problems.reduced = 0.35  # fraction that ends in a row reduction, a number
  c.problems.num_train = 1024  # problems of the training split
  c.problems.num_heldout = 48  # problems of the held-out split
  c.problems.heldout_split = "validation"  # or "test"
  c.problems.seed = 0  # of the draw; the same for every run seed
  # A problem whose first prompt does not fit: "skip" (and count) or "refuse".
  c.problems.long_prompts = "skip"

  c.harness = config_dict.ConfigDict()
  # Where kernels are judged: "local", or "ray" for the machines of a Ray
  # cluster (how to start one: kernels_eval/ray_pool.py).
  c.harness.backend = "local"
  # host:port of that cluster; unset = one is started on this machine.
  c.harness.ray_address = config_dict.placeholder(str)
  # Where kernels run: "cpu", "cuda" (a GPU), or "auto" (the GPU where there is
  # one). The tiny policy has learnt from what the CPU executor says.
  c.harness.executor = "cpu"
  # Indices of the GPUs that judge, among this machine's as CUDA counts them.
  # Judges are shared out among them. With "ray" (0, 1) asks for two of each
  # machine.
  c.harness.devices = (0,)
  # On a GPU: whether kernels run on the CPU executor first, so that those whose
  # fault it finds never reach the GPU, which takes a second over each of them.
  c.harness.cpu_first = True
  # Time right kernels on the GPU, beside the canonical ones: what the reward
  # "rank_speed" ranks by; refused without a GPU, since the CPU times nothing.
  c.harness.timing = False
  # On a GPU: what compute-sanitizer says of a failure becomes feedback, which
  # takes seconds over each one.
  c.harness.sanitizer = False
  # Judge processes (of each machine); 0 = one for each processor.
  c.harness.num_workers = 0
  c.harness.seed = 0  # of the hidden test inputs
  c.harness.run_cpu_s = 2.0  # processor seconds of a candidate's run
  c.harness.compile_cpu_s = 20.0  # processor seconds of its compilation

  c.rollout = config_dict.ConfigDict()
  c.rollout.num_problems = 16  # P, for each iteration
  c.rollout.group_size = 8  # G, samples of a problem
  c.rollout.num_turns = 3  # T, the first one included
  c.rollout.temperature = 1.0
  c.rollout.max_prompt_tokens = 88
  c.rollout.max_feedback_tokens = 80
  c.rollout.max_new_tokens = 144  # of one turn
  c.rollout.max_context_tokens = 680
  # Batch sizes of later turns, beside all P * G rows.
  c.rollout.row_buckets = (32, 128)
  # Refill (DAPO's dynamic sampling): while fewer groups than this have an
  # advantage, roll out other problems, at most so many times.
  c.rollout.min_spread_groups = 1
  c.rollout.max_refill_rounds = 0

  c.sampler = config_dict.ConfigDict()
  # What is cut off in sampling, in this order; the stored log-probability is
  # that of the whole softmax (leap_jax/draws.py).
  c.sampler.top_k = 0  # keep the k most probable ids; 0 = all
  c.sampler.top_p = 1.0  # keep the smallest set with at least this mass
  c.sampler.min_p = 0.0  # keep ids with this share of the top one's probability
  # Of weights and caches while sampling: "float32" or "bfloat16". Another one
  # than policy.dtype is told at start: sampler and trainer round differently.
  c.sampler.dtype = "float32"
  # "xla", "cudnn" (NVIDIA, 16 bits; each new token's is our own where it
  # works), or "auto": cudnn where it can be.
  c.sampler.attention = "auto"
  # Decoding programs: of at most so many slots on each device (0 = all rows
  # that it has), and, where slot_ratio is below 1, smaller ones down to
  # least_slots, each about that share of the next. More programs waste fewer
  # slots and compile longer.
  c.sampler.max_slots = 0
  c.sampler.slot_ratio = 1.0
  c.sampler.least_slots = 8
  # Rows get new slots when this share of the slots is idle or could be saved;
  # 1 = when all have ended.
  c.sampler.idle_fraction = 1.0
  # Attention of XLA looks at a multiple of so many tokens; 0 = at all that a
  # turn may have. (cuDNN looks at what there is.)
  c.sampler.prefix_step = 0
  # The rows of a group share the keys and values of their prompt: less memory,
  # less to read in each step. cuDNN only.
  c.sampler.shared_prompts = False
  c.sampler.prompts_per_call = 0  # prompts that are read at once; 0 = all

  c.method = config_dict.ConfigDict()
  c.method.name = "leap"  # a key of methods.METHODS
  # Parts of it: "own", or another one in its place (leap_jax/methods.py).
  c.method.gate = "own"  # a key of methods.GATES
  c.method.reward = "own"  # a key of methods.REWARDS
  c.method.credit = "own"  # a key of methods.CREDITS
  c.method.f_lo = 0.5  # DCP: least fraction of first-turn failures ...
  c.method.f_hi = 0.875  # ... and most, of a group that gets more turns
  c.method.gamma = 0.4  # discount of a repair's reward to earlier turns
  c.method.fail_rate_decay = 0.5  # weight of the past, gate "smoothed"
  # For a sampler that is not the trainer: a key of corrections.CORRECTIONS.
  c.method.correction = "none"
  c.method.mirror_pop_delta = 0.05  # mean |log ratio| of a turn, in nats
  # Order of training problems: "uniform", or "predictive" (problems whose
  # samples lately all came to the same are drawn less).
  c.method.sampling = "uniform"

  c.learner = config_dict.ConfigDict()
  c.learner.learning_rate = 1e-6
  c.learner.warmup_updates = 0  # linear
  c.learner.max_grad_norm = 1.0
  c.learner.weight_decay = 0.0
  c.learner.b1 = 0.9
  c.learner.b2 = 0.95
  c.learner.updates_per_iteration = 1  # passes over an iteration's batch
  c.learner.clip_low = 0.2
  c.learner.clip_high = 0.28
  c.learner.kl_coef = 0.0
  # "constant_length" (Dr. GRPO), "sequence_mean" (GRPO), "token_mean" (DAPO)
  c.learner.normalization = "constant_length"
  # The samples that the loss is divided by: those "with_advantage", or
  # "all_judged": an update with little to learn from is then a small one.
  c.learner.denominator = "with_advantage"
  c.learner.bucket_tokens = (128, 208, 336, 680)  # padded row lengths
  c.learner.micro_tokens = 1536  # computed tokens of a micro-batch
  # Logits of the update: "whole" (every position) or "chunked" (the policy's
  # own tokens, so many at a time; for large vocabularies).
  c.learner.head = "whole"
  c.learner.head_tokens = 4096
  # Warn when a token's log-probability differs by more than this between
  # sampler and trainer (first update of an iteration), in nats. On a CPU they
  # agree to 1e-5; TensorFloat-32 on a GPU leaves a few 1e-3.
  c.learner.max_log_ratio = 0.02
  # Stop when |log ratio| of the first update is above; unset = never.
  c.learner.stop_log_ratio = config_dict.placeholder(float)

  c.warm_start = config_dict.ConfigDict()
  c.warm_start.num_steps = 0  # supervised steps before RL; 0 = no such stage
  c.warm_start.num_conversations = 4096
  c.warm_start.first_right = 0.3  # first answers that are correct
  c.warm_start.repair_right = 0.5  # repairs that are correct
  c.warm_start.batch_rows = 64
  c.warm_start.learning_rate = 1e-3
  c.warm_start.warmup_steps = 50
  c.warm_start.log_every = 10  # steps
  c.warm_start.checkpoint_every = 200  # steps

  c.eval = config_dict.ConfigDict()
  c.eval.every = 0  # iterations between held-out evaluations; 0 = ends only
  # And at least this share of the iterations so far: 0.1 evaluates after 10,
  # 11, 13, ..., 30, 33, ... of them (experiments/eval_schedule.py).
  c.eval.growth = 0.0
  c.eval.ks = (1, 4, 8)  # of pass@k
  # At the end once more, with feedback on other problems: what of the repairs
  # is due to the feedback?
  c.eval.random_feedback = False

  c.run = config_dict.ConfigDict()
  c.run.num_iterations = 20  # at most
  # Seconds of training (no held-out evaluation, no compilation) after which no
  # further iteration is begun; unset = no limit.
  c.run.max_training_s = config_dict.placeholder(float)
  c.run.checkpoint_every = 5  # iterations
  c.run.keep_checkpoints = 3
  c.run.save_trajectories = True
  # Of several devices: how many share the heads of one copy of the model; the
  # rest split the rows, and all of them the parameters.
  c.run.model_devices = 1
  # Folder in which compiled programs are kept for the next start; unset =
  # nowhere. What lies in it is run: never share it.
  c.run.compilation_cache = config_dict.placeholder(str)
  return c.lock()
