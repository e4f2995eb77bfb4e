// Learning rates of some parameters, as factors of the common one.
//
//   const auto rates = artel::optim::parse_rates("head: 10, encoder.0: 0.1");
//   artel::optim::rate_factor(rates, "head.weight");  // 10
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace artel::optim {

struct RateFactor {
  std::string prefix;  // of the parameters' names
  double factor = 1;
};

// "PREFIX: FACTOR, ...". Throws for text of another form, a prefix that occurs twice, or a factor
// that is not positive.
std::vector<RateFactor> parse_rates(std::string_view text);

// That of the longest prefix that fits, or 1.
double rate_factor(const std::vector<RateFactor>& rates, std::string_view name);

}  // namespace artel::optim
