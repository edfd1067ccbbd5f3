"""Runs a function on two ranks, which communicate by gloo."""

import multiprocessing
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from accelerate.utils import InitProcessGroupKwargs
from servers import PATIENCE, free_port


def on_two_ranks(work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Returns the result of work(accelerator, *arguments) on each rank, each a fork of this one."""
    torch.set_num_threads(1)  # a fork has no other threads
    given = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    fork = multiprocessing.get_context("fork")
    started = []
    for rank in range(2):
        here, there = fork.Pipe(duplex=False)
        own = given | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        process = fork.Process(target=_rank, args=(own, there, work, arguments))
        process.start()
        there.close()
        started.append((process, here))
    try:
        return [here.recv() for _, here in started]  # EOFError: a rank failed
    finally:
        for process, _ in started:
            process.join(PATIENCE)
            process.kill()


def _rank(environment: dict[str, str], answer: Any, work: Callable[..., Any], arguments: Any):
    os.environ |= environment
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    # A rank that waits for a message that is never sent must fail.
    patience = InitProcessGroupKwargs(timeout=timedelta(seconds=60))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[patience])
    answer.send(work(accelerator, *arguments))
    torch.distributed.destroy_process_group()
