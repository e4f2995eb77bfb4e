#include "artel/run/sweep.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/base/text.h"

namespace artel {
namespace {

constexpr size_t kMostRungs = 3;

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

bool is_whole(std::string_view text) { return text.find_first_not_of("-0123456789") == text.npos; }

}  // namespace

std::optional<SweepDimension> parse_dimension(const std::string& setting) {
  const size_t equals = setting.find('=');
  if (equals == setting.npos) return {};
  SweepDimension dimension;
  dimension.key = trim(std::string_view(setting).substr(0, equals));
  // A range of workers is one setting.
  if (dimension.key.starts_with("cluster.")) return {};
  std::string_view value = trim(std::string_view(setting).substr(equals + 1));
  if (value.find('|') != value.npos && !value.starts_with('[')) {
    for (const std::string& choice : split(value, '|'))
      dimension.choices.emplace_back(trim(choice));
    return dimension;
  }
  constexpr std::string_view kLog = " log";
  if (value.ends_with(kLog)) {
    dimension.logarithmic = true;
    value = trim(value.substr(0, value.size() - kLog.size()));
  }
  const size_t dots = value.find("..");
  if (dots == value.npos) return {};
  const std::string_view low = trim(value.substr(0, dots)), high = trim(value.substr(dots + 2));
  const std::optional<double> from = number_of(low), to = number_of(high);
  if (!from && !to) return {};  // a path, for example
  require(from && to && *from < *to && (!dimension.logarithmic || *from > 0),
          ErrorKind::invalid_argument,
          "--set {}: got the range '{}', expected LOW..HIGH or 'LOW..HIGH log' with a positive LOW",
          dimension.key, value);
  dimension.low = *from;
  dimension.high = *to;
  dimension.whole = is_whole(low) && is_whole(high);
  return dimension;
}

std::string drawn_value(const SweepDimension& dimension, uint64_t seed, int trial) {
  Random random{seed, hash_name("sweep"), static_cast<uint64_t>(trial), hash_name(dimension.key)};
  if (!dimension.is_range()) return dimension.choices[random.below(dimension.choices.size())];
  const double share = random.uniform();
  const double high = dimension.high + (dimension.whole ? 1 : 0);
  const double value = dimension.logarithmic ? dimension.low * std::pow(high / dimension.low, share)
                                             : dimension.low + (high - dimension.low) * share;
  if (dimension.whole) return fmt::format("{}", static_cast<int64_t>(std::floor(value)));
  return fmt::format("{:.4g}", std::clamp(value, dimension.low, dimension.high));
}

std::vector<int64_t> rungs_of(int64_t longest, int64_t fraction) {
  std::vector<int64_t> rungs = {longest};
  while (fraction > 1 && rungs.size() < kMostRungs && rungs.back() / fraction >= 1)
    rungs.push_back(rungs.back() / fraction);
  std::reverse(rungs.begin(), rungs.end());
  return rungs;
}

std::vector<int> ranking(const SweepResults& results, int rung, bool less_is_better) {
  std::vector<std::pair<double, int>> ended;
  for (const auto& [job, value] : results)
    if (job.rung == rung && value && std::isfinite(*value))
      ended.emplace_back(less_is_better ? *value : -*value, job.trial);
  std::sort(ended.begin(), ended.end());
  std::vector<int> trials;
  for (const auto& [value, trial] : ended) trials.push_back(trial);
  return trials;
}

std::optional<SweepJob> next_job(const SweepRules& rules, const SweepResults& results,
                                 const std::set<SweepJob>& running) {
  const auto begun = [&](const SweepJob& job) {
    return results.contains(job) || running.contains(job);
  };
  int first_new = 0;
  while (first_new < rules.trials && begun({first_new, 0})) ++first_new;
  bool all_here = first_new == rules.trials;  // whether nothing more will end at this rung
  std::optional<SweepJob> promoted;
  for (int rung = 0; rung + 1 < rules.rungs; ++rung) {
    const std::vector<int> ranked = ranking(results, rung, rules.less_is_better);
    all_here = all_here && std::none_of(running.begin(), running.end(),
                                        [&](const SweepJob& job) { return job.rung <= rung; });
    auto good = std::ssize(ranked) / rules.fraction;
    if (all_here && !ranked.empty()) good = std::max<int64_t>(1, good);
    for (int64_t i = 0; i < good; ++i)
      if (const SweepJob next = {ranked[static_cast<size_t>(i)], rung + 1}; !begun(next)) {
        promoted = next;
        all_here = false;
        break;
      }
  }
  if (promoted) return promoted;
  return first_new < rules.trials ? std::optional<SweepJob>({first_new, 0}) : std::nullopt;
}

}  // namespace artel
