// Running statistics of observations of lanes.
#pragma once

#include <span>

namespace artel::optim {

// Moves a statistic towards the mean observation of the lanes. `observed` is the sum over `own` of
// the `lanes` lanes of a step. With fewer lanes, the statistic moves proportionally less.
void follow(std::span<float> statistic, std::span<const float> observed, float momentum, int lanes,
            int own);

}  // namespace artel::optim
