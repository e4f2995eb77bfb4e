// Running statistics, which follow what lanes observe.
#pragma once

#include <span>

namespace artel::optim {

// Moves a statistic towards the mean over lanes of what they observed. `observed` is the sum over
// `own` of the `lanes` lanes of a step; with fewer than all, the statistic moves that much less.
void follow(std::span<float> statistic, std::span<const float> observed, float momentum, int lanes,
            int own);

}  // namespace artel::optim
