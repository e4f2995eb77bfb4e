#include "artel/train/strategies/divided.h"

#include <algorithm>

#include "artel/train/exchange.h"

namespace artel {

bool adds_sums(const Situation& now) {
  const std::vector<std::string> ways = exchange_names();
  return now.cluster.servers() == 0 &&
         std::find(ways.begin(), ways.end(), now.options.strategy) != ways.end();
}

}  // namespace artel
