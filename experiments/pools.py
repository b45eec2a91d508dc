"""Where kernels are judged: on this machine, or on those of a Ray cluster."""

from collections.abc import Callable

from ml_collections import config_dict

from kernels_eval.executors import CUDA

# The harness is imported where it is used: a mistake on the command line is
# answered at once.


def _limits(config):
  from kernels_eval.settings import Settings

  return Settings(
    run_cpu_s=config.harness.run_cpu_s,
    compile_cpu_s=config.harness.compile_cpu_s,
  )


def _gpu(config):
  from kernels_eval.cuda.settings import CudaSettings

  return CudaSettings(
    devices=config.harness.devices,
    with_cpu_first=config.harness.cpu_first,
    with_timing=config.harness.timing,
    with_sanitizer=config.harness.sanitizer,
  )


def _local(config):
  from kernels_eval import client

  return client.Pool(
    num_workers=config.harness.num_workers or None,
    seed=config.harness.seed,
    settings=_limits(config),
    executor=config.harness.executor,
    cuda_settings=_gpu(config),
  )


def _ray(config):
  from kernels_eval import ray_pool

  return ray_pool.RayPool(
    address=config.harness.ray_address,
    num_workers=config.harness.num_workers or None,
    seed=config.harness.seed,
    settings=_limits(config),
    executor=config.harness.executor,
    cuda_settings=_gpu(config),
  )


# Each takes the config and gives a kernels_eval.batches.Judges, or raises
# client.HarnessError.
BACKENDS: dict[str, Callable[[config_dict.ConfigDict], object]] = {
  "local": _local,
  "ray": _ray,
}


def make_pool(config: config_dict.ConfigDict):
  """The judges that the config asks for; close them, or use `with`.

  Raises:
    client.HarnessError: they cannot work, or the reward needs times and they
      have no GPU: of the machine, another one may do. One line says why.
  """
  from kernels_eval import client

  pool = BACKENDS[config.harness.backend](config)
  if config.method.reward == "rank_speed" and pool.executor_name != CUDA:
    pool.close()
    raise client.HarnessError(
      "config.method.reward=rank_speed needs a GPU: the judges have none, and "
      "the CPU times nothing"
    )
  return pool
