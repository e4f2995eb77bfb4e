// Settings of oneDNN and OpenBLAS, and the instruction sets in use.
//
// Only artel::ThreadPool runs threads. Both libraries run single-threaded inside a pool thread, so
// a worker never uses more cores than it was given.
#pragma once

#include <string>
#include <string_view>

#include "artel/exec/plan/choices.h"

namespace artel {

// Makes oneDNN and OpenBLAS single-threaded for the calling thread, and at its first call settles
// which instructions oneDNN may use; cheap after the first call in a thread. Meant as the
// `on_start` of a ThreadPool; kernels call it too before they enter a library, for callers outside
// a pool.
void limit_library_threads();

// Reports that oneDNN returned `status` instead of success for `what`. Throws std::bad_alloc if
// memory ran out, so that the other workers continue without this one, and Error otherwise.
[[noreturn]] void fail_in_onednn(int status, std::string_view what);

// The instruction sets that kernels use on this processor with these choices, and the versions of
// the libraries. Processors with the same text give the same bits.
std::string instruction_sets(const KernelChoices& choices);

}  // namespace artel
