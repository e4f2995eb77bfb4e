// Which mesh the workers form who are left, or who have come: the one that was asked for, or the
// nearest that their number allows. Bits do not depend on it.
#pragma once

#include "artel/train/strategy_options.h"

namespace artel {

// The same options with a number of workers for tensor groups and pipelines that divides `workers`.
// A tensor group never grows, as its workers share `cluster.shards`. A pipeline rather grows than
// shrinks, so that no worker needs more memory than before. A pure function.
StrategyOptions fitting_mesh(const StrategyOptions& asked, int workers);

}  // namespace artel
