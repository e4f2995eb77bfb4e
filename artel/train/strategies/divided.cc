#include "artel/train/strategies/divided.h"

#include <algorithm>
#include <exception>

#include "artel/base/text.h"
#include "artel/train/step/exchange.h"

namespace artel {

void wait_for_all(std::vector<comm::Handle>& handles) {
  std::exception_ptr error;
  for (comm::Handle& handle : handles) try {
      handle.wait(Deadline::never());
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  if (error) std::rethrow_exception(error);
}

std::string divisors_of(int number, int least) {
  std::vector<std::string> divisors;
  for (int i = least; i <= number; ++i)
    if (number % i == 0) divisors.push_back(std::to_string(i));
  return join(divisors, " or ");
}

bool adds_sums(const Situation& now) {
  const std::vector<std::string> ways = exchange_names();
  return now.cluster.servers() == 0 &&
         std::find(ways.begin(), ways.end(), now.options.strategy) != ways.end();
}

}  // namespace artel
