// The inner interpreter of element-wise programs: one block, all instructions.
#pragma once

#include <cstdint>

#include "artel/exec/cpu/elementwise/elementwise.h"

namespace artel::kernels {

// Blocks are multiples of this many elements (a vector of the widest target).
inline constexpr int64_t kElementPad = 16;

// Runs the instructions on registers[0..]: instruction i writes registers[inputs + i], which may
// be the memory of one of its operands. Registers have room for `n` elements rounded up to a
// multiple of kElementPad, and what follows the last may be overwritten.
void run_instructions(const ElementInstruction* code, int count, int inputs,
                      float* const* registers, int64_t n);

}  // namespace artel::kernels
