// Running statistics, which track what lanes observe.
#pragma once

#include <span>

namespace artel::optim {

// Moves a statistic towards the mean of what the lanes observed. `observed` is the sum over `own`
// of the `lanes` lanes of a step; if they are not all the lanes, the statistic moves proportionally
// less.
void follow(std::span<float> statistic, std::span<const float> observed, float momentum, int lanes,
            int own);

}  // namespace artel::optim
