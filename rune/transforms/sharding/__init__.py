"""Programs on several devices: shard_map, the meaning of its equations, and how a mesh runs them.

shard_map.py    the transformation             primitive.py   its equations, with their rules
varying.py      what differs between devices   blocks.py      which block is whose
localize.py     from a program on sharded arrays to that of each device, by
letters.py      the axes that operands and results share,
cuts.py         which of these axes are split,
loops.py        layouts of carries,             branches.py    layouts of results,
later_sums.py   sums over steps and devices,    scattered_sums.py    sums of which parts are read,
agreement.py    decisions on which all devices agree, and
reshard.py      the collectives from one layout to another
block.py        a device's part of an array while its program is written
constraint.py   the layout of a value           laid_out.py    the layout of arguments and results
assemble.py     arrays made from their blocks   moves.py       arrays moved to another layout
exchanges.py    what the devices send           donation.py    blocks that results may take over
run.py          a program on all devices        workers.py     a thread for each of them
watched.py      the same with checks            refusal.py     errors of shardings
explicit/       layouts along Explicit axes, known while a function is traced
"""
