#include "artel/base/random.h"
#include "tests/reference/rules.h"

namespace artel::reference {

uint64_t random_key(const Call& call) {
  return mix_key({call.key.seed, static_cast<uint64_t>(call.key.step),
                  static_cast<uint64_t>(call.key.lane),
                  hash_name(call.attributes().text("stream"))});
}

// Element i is dropped if number i of the stream is below the probability, both as floats.
std::vector<double> dropout_factors(uint64_t key, double probability, int64_t count) {
  Random random(key);
  std::vector<double> factors;
  for (int64_t i = 0; i < count; ++i)
    factors.push_back(random.uniform() < static_cast<float>(probability) ? 0
                                                                         : 1 / (1 - probability));
  return factors;
}

namespace {

// The gradient is dropped where the operand was.
Array dropped(const Call& call, Array x) {
  // For a shard: rows of elements that are parts of longer rows.
  const Attributes& a = call.attributes();
  const int64_t count = x.shape.elements(), row = a.integer("row", count);
  const int64_t all = a.integer("all_of_row", row), first = a.integer("first_of_row", 0);
  const std::vector<double> factors =
      dropout_factors(random_key(call), a.number("probability"), row > 0 ? count / row * all : 0);
  for (int64_t i = 0; i < count; ++i)
    x.data[static_cast<size_t>(i)] *= factors[static_cast<size_t>(i / row * all + first + i % row)];
  return x;
}

}  // namespace

std::vector<Rule> dropout_rules() {
  return {{"dropout", [](const Call& call) -> Arrays { return {dropped(call, call.in(0))}; },
           [](const Call& call) -> Arrays { return {dropped(call, call.dy())}; }}};
}

}  // namespace artel::reference
