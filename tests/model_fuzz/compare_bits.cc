// One case with other threads, other groups of lanes, less memory, and once more.
#include <fmt/format.h>

#include "artel/base/error.h"
#include "tests/model_fuzz/check.h"
#include "tests/model_fuzz/training.h"
#include "tests/unit/train/workers.h"

namespace artel::model_fuzz {
namespace {

// The bits after all steps, or the message of the error that ended them.
struct Outcome {
  std::vector<float> bits;
  std::string error;
  bool operator==(const Outcome& other) const {
    return error == other.error && same_bits(bits, other.bits);
  }
};

// With `evaluated` the bits of an evaluation belong to it.
Outcome outcome(const NetworkCase& network, const Setting& setting, bool evaluated = false) {
  Training training(network, setting);
  try {
    for (int64_t step = 0; step < network.steps; ++step) training.step();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::memory || error.kind() == ErrorKind::internal) throw;
    return {{}, error.what()};
  }
  Outcome result = {training.bits(), {}};
  if (!evaluated) return result;
  for (const auto& [name, output] : training.evaluate())
    for (const double value : output.data) result.bits.push_back(static_cast<float>(value));
  return result;
}

}  // namespace

std::optional<std::string> compare_bits(const NetworkCase& network) {
  const auto threads = static_cast<int>(network.threads);
  const Outcome expected = outcome(network, {});
  const auto differs = [&](const Setting& setting) {
    return !(outcome(network, setting) == expected);
  };
  if (differs({})) return "a second run has other bits";
  if (differs({.check_memory = true})) return "with marked memory the bits are others";
  for (const int together : {1, 2, 3})
    if (together < network.lanes && differs({.lanes_together = together}))
      return fmt::format("groups of {} lanes give other bits than all lanes together", together);
  if (threads > 1 && !(outcome(network, {.threads = threads}, true) == outcome(network, {}, true)))
    return fmt::format("{} threads give other bits than one", threads);
  if (!network.limit_memory) return std::nullopt;
  const size_t bytes = Training(network, {}).activation_bytes();
  for (const double share : kMemoryShares) {
    try {
      if (differs({.threads = threads,
                   .memory_limit = static_cast<size_t>(share * static_cast<double>(bytes)),
                   .check_memory = true}))
        return fmt::format("with {} of the memory the bits are others", share);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
    }
  }
  return std::nullopt;
}

}  // namespace artel::model_fuzz
