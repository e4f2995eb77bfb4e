#include "artel/predict/class_shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace artel {

std::vector<double> class_shares(std::span<const float> scores) {
  if (scores.size() == 1) {
    const double share = 1 / (1 + std::exp(-static_cast<double>(scores[0])));
    return {1 - share, share};
  }
  const float largest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> shares;
  for (const float score : scores) shares.push_back(std::exp(static_cast<double>(score) - largest));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace artel
