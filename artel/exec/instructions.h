// Which vector instructions kernels use. Other instructions add in another order, so workers whose
// processors differ would drift apart: they use the same ones, or do not train together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace artel {

// The sets that this kind of processor may have, the least first: "sse4", "avx2", "avx512" on
// x86-64, "neon" on aarch64. Each includes those before it.
const std::vector<std::string>& instruction_names();

// The place in instruction_names of the best that this processor has, or that the environment
// variable ARTEL_INSTRUCTIONS allows.
int best_instructions();

// From now on kernels and oneDNN use no better ones. To be called before the first program is
// compiled; throws if oneDNN has begun to use others, and for what the processor lacks.
void limit_instructions(int place);

// The targets of Highway that kernels may use. Nothing else asks Highway itself, which would then
// choose among all that the processor has.
int64_t usable_targets();

// Makes that call if the environment asks for it and nobody has made it before; returns whether
// there is a limit now.
bool settle_instructions();

}  // namespace artel
