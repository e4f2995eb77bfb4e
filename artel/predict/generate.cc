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

// Iterates over tokens by descending score. Sorts lazily, because sorting a large vocabulary takes
// longer than running a small network.
class Likeliest {
 public:
  explicit Likeliest(std::span<const float> scores) : scores_(scores), order_(scores.size()) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  int32_t operator[](size_t i) {
    if (i >= sorted_) sort(std::min(order_.size(), std::max({i + 1, size_t{32}, 4 * sorted_})));
    return order_[i];
  }

 private:
  void sort(size_t end) {
    const auto begin = order_.begin();
    std::partial_sort(begin + static_cast<int64_t>(sorted_), begin + static_cast<int64_t>(end),
                      order_.end(), [&](int32_t a, int32_t b) {
                        return scores_[a] != scores_[b] ? scores_[a] > scores_[b] : a < b;
                      });
    sorted_ = end;
  }

  std::span<const float> scores_;
  std::vector<int32_t> order_;
  size_t sorted_ = 0;
};

}  // namespace

int32_t sample_token(std::span<const float> scores, const SamplingOptions& options,
                     Random& random) {
  check(options);
  Likeliest tokens(scores);
  const float best = scores[tokens[0]];
  require(std::isfinite(best), ErrorKind::invalid_argument,
          "[generate] the largest score is {}, expected a finite number; the weights are damaged",
          best);
  if (options.temperature == 0) return tokens[0];
  const auto share_of = [&](float score) {
    return std::exp((double{score} - best) / options.temperature);
  };
  const auto share = [&](size_t i) { return share_of(scores[tokens[i]]); };
  const auto limit = static_cast<size_t>(options.top_k);
  const size_t kept = limit > 0 ? std::min(limit, scores.size()) : scores.size();
  double mass = 0;
  if (kept == scores.size())
    for (const float score : scores) mass += share_of(score);
  else
    for (size_t i = 0; i < kept; ++i) mass += share(i);
  size_t last = kept - 1;  // the first token at which the total probability reaches top_p
  if (options.top_p < 1) {
    const double wanted = options.top_p * mass;
    last = 0;
    for (mass = share(0); mass < wanted && last + 1 < kept;) mass += share(++last);
  }
  double left = random.uniform() * mass;
  size_t chosen = 0;
  while (chosen < last && left >= share(chosen)) left -= share(chosen++);
  return tokens[chosen];
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
