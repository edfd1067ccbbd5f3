"""Runs training/curriculum.py with several DeepSpeed settings in one process, to import once.

accelerate launch … curricula_in_turn.py DEEPSPEED=CONFIG …    name in conf/deepspeed, settings file
"""

import os
import sys

import deepspeed

from gaixie.training import curriculum

# DeepSpeed would compile it for a minute; a single process does not need shared memory.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
os.environ |= {"TORCHELASTIC_USE_AGENT_STORE": "False", "MASTER_PORT": "0"}  # a store for each run

for given in sys.argv[1:]:
    name, config = given.split("=")
    child = os.fork()
    if not child:
        os.environ["ACCELERATE_DEEPSPEED_CONFIG_FILE"] = f"conf/deepspeed/{name}.json"
        sys.exit(curriculum.main(["--config", config]))
    if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(code)
