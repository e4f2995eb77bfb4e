// Selection of the vector instructions of kernels. Different instructions add in different orders,
// so workers with different processors would drift apart. They must use the same instructions to
// train together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace artel {

// The instruction sets of this kind of processor, least first: "sse4", "avx2", "avx512" on x86-64,
// "neon" on aarch64. Each includes the previous ones.
const std::vector<std::string>& instruction_names();

// The place in instruction_names of the best that this processor has, or that the environment
// variable ARTEL_INSTRUCTIONS allows.
int best_instructions();

// Limits kernels and oneDNN to this set. Call before the first program is compiled. Throws if
// oneDNN has already used others, and for a set that the processor lacks.
void limit_instructions(int place);

// The targets of Highway that kernels may use. Nothing else asks Highway itself, which would then
// choose among all that the processor has.
int64_t usable_targets();

// Applies the limit requested by the environment, unless one was set before. Returns true if there
// is a limit now.
bool settle_instructions();

}  // namespace artel
