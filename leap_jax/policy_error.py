"""What every reader of a policy raises."""


class PolicyError(Exception):
  """A folder or file holds no usable policy; one line says why."""
