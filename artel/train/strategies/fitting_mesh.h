// Selects the mesh for a changed number of workers: the requested one, or the nearest that the
// number allows. Bits do not depend on it.
#pragma once

#include "artel/train/strategy_options.h"

namespace artel {

// Adjusts the options such that tensor groups and pipelines divide `workers`. A tensor group never
// grows, because its workers share `cluster.shards`. A pipeline prefers to grow, so that no worker
// needs more memory than before. A pure function.
StrategyOptions fitting_mesh(const StrategyOptions& asked, int workers);

}  // namespace artel
