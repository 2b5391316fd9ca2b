"""`jax._src.xla_bridge`: Chex asks whether the processor is in use before it cuts it up."""

# It always is: RUNE_CPU_DEVICES says before Python starts how many devices the processor is.
_backends = {"cpu": "rune"}
