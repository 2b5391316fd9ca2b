// Blocks of a launch: threads one after the other, or as fibres where they meet barriers.
#pragma once
#include <array>
#include <atomic>

#include "kernel.h"

using Words = std::array<unsigned long long, 8>;
static const int POOL_BYTES = 227 << 10;  // shared memory that a launch may give to a block

void fault(const char* what);
void run_blocks(const Kernel& kernel, Position blocks, Position threads, const Words& words);
