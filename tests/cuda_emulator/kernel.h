// What kernels and the driver that runs them have in common.
#pragma once

struct Position { unsigned x, y, z; };
struct Kernel {
  void (*run)(const unsigned long long* words);
  int params, most_threads, has_barriers;
};
