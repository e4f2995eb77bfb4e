#include "artel/predict/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "artel/base/error.h"

namespace artel {
namespace {

void check(const SamplingOptions& options) {
  require(options.temperature >= 0, ErrorKind::invalid_argument,
          "[generate] temperature: got {}, expected 0 or more", options.temperature);
  require(options.top_k >= 0, ErrorKind::invalid_argument,
          "[generate] top_k: got {}, expected 0 or more", options.top_k);
  require(options.top_p > 0 && options.top_p <= 1, ErrorKind::invalid_argument,
          "[generate] top_p: got {}, expected more than 0 and at most 1", options.top_p);
}

}  // namespace

int32_t sample_token(std::span<const float> scores, const SamplingOptions& options,
                     Random& random) {
  check(options);
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  const bool greedy = options.temperature == 0;
  const size_t limit = greedy ? 1 : static_cast<size_t>(options.top_k);
  const size_t kept = limit > 0 ? std::min(limit, order.size()) : order.size();
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(kept), order.end(),
                    likelier);
  const float best = scores[order.front()];
  require(std::isfinite(best), ErrorKind::invalid_argument,
          "[generate] scores: got {} as the largest, expected a number; the weights are broken",
          best);
  if (greedy) return order.front();
  std::vector<double> shares(kept);
  for (size_t i = 0; i < kept; ++i)
    shares[i] = std::exp((double{scores[order[i]]} - best) / options.temperature);
  double mass = options.top_p * std::accumulate(shares.begin(), shares.end(), 0.0);
  size_t last = 0;  // of the nucleus: the first that reaches the mass
  for (double sum = shares[0]; sum < mass && last + 1 < kept; sum += shares[++last]) {
  }
  mass = std::accumulate(shares.begin(), shares.begin() + static_cast<int64_t>(last) + 1, 0.0);
  double left = random.uniform() * mass;
  size_t chosen = 0;
  while (chosen < last && left >= shares[chosen]) left -= shares[chosen++];
  return order[chosen];
}

void generate(Decoder& decoder, std::vector<int32_t> text, const GenerateOptions& options,
              const std::function<bool(int32_t)>& on_token) {
  require(!text.empty(), ErrorKind::invalid_argument,
          "[generate] prompt: it is empty, expected at least one token");
  require(static_cast<int64_t>(text.size()) <= decoder.positions(), ErrorKind::invalid_argument,
          "[generate] prompt: got {} tokens, expected at most the network's {} positions; try a "
          "shorter one",
          text.size(), decoder.positions());
  check(options.sampling);
  decoder.forget();
  Random random{options.seed, hash_name("generate")};
  size_t unread = text.size();
  if (options.separator) {
    const auto last = std::find(text.rbegin(), text.rend(), *options.separator);
    if (last != text.rend()) unread = static_cast<size_t>(last - text.rbegin()) + 1;
  }
  for (int64_t i = 0; i < options.tokens; ++i) {
    if (decoder.size() == decoder.positions()) {
      decoder.forget();
      unread = static_cast<size_t>(std::max<int64_t>(1, decoder.positions() / 2));
    }
    const Tensor scores = decoder.read(std::span(text).last(unread));
    unread = 1;
    std::span<const float> known = scores.values<float>();
    if (options.vocabulary > 0)
      known = known.first(std::min(known.size(), static_cast<size_t>(options.vocabulary)));
    text.push_back(sample_token(known, options.sampling, random));
    if (options.separator == text.back()) decoder.forget();
    if (!on_token(text.back())) return;
  }
}

}  // namespace artel
