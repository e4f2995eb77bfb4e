// Initialisation of a model's parameters.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"
#include "artel/exec/parameters.h"
#include "artel/nn/model.h"

namespace artel {

// Sets all parameters and states that have an initialiser (ModelGraph::initialisers). Each has its
// own random stream, so the values do not depend on threads.
void initialise(ThreadPool& pool, uint64_t seed,
                const std::map<std::string, nn::Initialiser>& initialisers, Parameters& parameters);

}  // namespace artel
