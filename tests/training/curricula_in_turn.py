"""Runs training/curriculum.py with several settings of DeepSpeed, which are imported once.

accelerate launch … curricula_in_turn.py DEEPSPEED=CONFIG …    a file of conf/deepspeed and one of settings
"""

import os
import sys

import deepspeed

from gaixie.training import curriculum

# It would be compiled first, for a minute; a process that is alone shares no memory.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
os.environ |= {"TORCHELASTIC_USE_AGENT_STORE": "False", "MASTER_PORT": "0"}  # a store for each

for given in sys.argv[1:]:
    name, config = given.split("=")
    child = os.fork()
    if not child:
        os.environ["ACCELERATE_DEEPSPEED_CONFIG_FILE"] = f"conf/deepspeed/{name}.json"
        sys.exit(curriculum.main(["--config", config]))
    if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(code)
