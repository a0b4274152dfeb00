"""The wiring: registries, generations, the process nursery. The only package that knows all."""
