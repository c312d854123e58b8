"""Benchmarks: what the library costs and finds, against independent straightforward
implementations."""
