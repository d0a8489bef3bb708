"""JAX on one GPU: allocates, compiles, computes, frees; whole numbers, so that results are exact."""
import jax
import jax.numpy as jnp


@jax.jit
def step(x):
    return (x * 3 + 1) % 1021


x = jnp.arange(1 << 20, dtype=jnp.int32)
for _ in range(20):
    x = step(x)
print("platform", jax.devices()[0].platform)
print("steps", int(x.sum()))
a = jnp.arange(256 * 256, dtype=jnp.int32).reshape(256, 256) % 7
print("product", int((a @ a).sum()))
print("gradient", float(jax.grad(lambda v: (v * v).sum())(jnp.arange(8.0)).sum()))
