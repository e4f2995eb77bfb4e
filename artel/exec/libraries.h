// What kernels are made of: the threads of oneDNN and OpenBLAS, and the instructions in use.
//
// Parallelism belongs to artel::ThreadPool alone: inside a pool thread both libraries run on that
// one thread, so a worker never uses more cores than it was given.
#pragma once

#include <string>

#include "artel/exec/choices.h"

namespace artel {

// Makes oneDNN and OpenBLAS single-threaded for the calling thread, and at its first call settles
// which instructions oneDNN may use; cheap after the first call in a thread. Meant as the
// `on_start` of a ThreadPool; kernels call it too before they enter a library, for callers outside
// a pool.
void limit_library_threads();

// The instruction sets that kernels use on this processor by these choices, with the versions of
// the libraries: processors with the same text give the same bits.
std::string instruction_sets(const KernelChoices& choices);

}  // namespace artel
