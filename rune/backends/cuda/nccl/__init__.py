"""Collectives between CUDA devices of this process through NCCL, on their streams.

library        the C interface             calls   a collective as NCCL's calls, as data
communicators  one clique for each group   post    what a device does in a collective
crew           a program on all devices    losses  devices that others wait for in vain

Written against NCCL's public interface and tested against a stand-in that checks every call. It has
not run on several GPUs yet.
"""
