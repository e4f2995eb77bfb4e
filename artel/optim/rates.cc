#include "artel/optim/rates.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel::optim {

std::vector<RateFactor> parse_rates(std::string_view text) {
  std::vector<RateFactor> rates;
  if (trim(text).empty()) return rates;
  for (const std::string& item : split(text, ',')) {
    const size_t colon = item.rfind(':');
    RateFactor rate;
    rate.prefix = trim(std::string_view(item).substr(0, colon));
    const std::string_view number =
        colon == item.npos ? std::string_view() : trim(std::string_view(item).substr(colon + 1));
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), rate.factor);
    require(!rate.prefix.empty() && !number.empty() && error == std::errc{} &&
                end == number.data() + number.size() && std::isfinite(rate.factor) &&
                rate.factor > 0,
            ErrorKind::invalid_argument,
            "[optimizer] rates: got '{}', expected the beginning of a parameter's name and a "
            "positive factor, such as 'head: 10'; train.freeze holds parameters as they are",
            trim(item));
    require(std::none_of(rates.begin(), rates.end(),
                         [&](const RateFactor& other) { return other.prefix == rate.prefix; }),
            ErrorKind::invalid_argument, "[optimizer] rates: got '{}' twice, expected it once",
            rate.prefix);
    rates.push_back(std::move(rate));
  }
  return rates;
}

double rate_factor(const std::vector<RateFactor>& rates, std::string_view name) {
  const RateFactor* best = nullptr;
  for (const RateFactor& rate : rates)
    if (name.starts_with(rate.prefix) && (!best || rate.prefix.size() > best->prefix.size()))
      best = &rate;
  return best ? best->factor : 1;
}

}  // namespace artel::optim
