// The values that the parameters of a model begin with.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"
#include "artel/exec/parameters.h"
#include "artel/nn/model.h"

namespace artel {

// Sets all parameters and states for which there are initialisers (ModelGraph::initialisers). Each
// has its own random numbers, so the values do not depend on the threads.
void initialise(ThreadPool& pool, uint64_t seed,
                const std::map<std::string, nn::Initialiser>& initialisers, Parameters& parameters);

}  // namespace artel
