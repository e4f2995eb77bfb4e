// Learning rates of single parameters, as factors of the common rate.
//
//   const auto rates = artel::optim::parse_rates("head: 10, encoder.0: 0.1");
//   artel::optim::rate_factor(rates, "head.weight");  // 10
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace artel::optim {

struct RateFactor {
  std::string prefix;  // of parameter names
  double factor = 1;
};

// Parses "PREFIX: FACTOR, ...". Throws for other text, duplicate prefixes, and factors that are not
// positive.
std::vector<RateFactor> parse_rates(std::string_view text);

// The factor of the longest matching prefix, or 1.
double rate_factor(const std::vector<RateFactor>& rates, std::string_view name);

}  // namespace artel::optim
