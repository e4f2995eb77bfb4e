#include "artel/optim/running_average.h"

namespace artel::optim {

void follow(std::span<float> statistic, std::span<const float> observed, float momentum, int lanes,
            int own) {
  const float share = momentum / static_cast<float>(lanes);
  const float keep = own == lanes ? 1 - momentum : 1 - share * static_cast<float>(own);
  for (size_t i = 0; i < statistic.size(); ++i)
    statistic[i] = keep * statistic[i] + share * observed[i];
}

}  // namespace artel::optim
