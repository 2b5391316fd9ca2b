"""Several devices of the CPU run one program together, on native threads.

talk      the collectives of a plan            run       a program on all devices of a grid
moves     collectives as moves of bytes        native    threads, and the parts that they run
sums      sums and extremes in a fixed tree    meet      meetings of devices
records   data shared with native code         perform   moves            words   records in IR
"""
