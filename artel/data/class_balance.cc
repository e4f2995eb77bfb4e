#include "artel/data/class_balance.h"

#include <algorithm>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/data/sampler.h"
#include "artel/data/tables/sparse_rows.h"

namespace artel::data {
namespace {

// Calls use(sample, label) for each label.
void for_each_label(const Dataset& set, const auto& use) {
  const SampleLayout& layout = set.layout();
  require(layout.target_kind == TargetKind::classes, ErrorKind::invalid_argument,
          "the classes of a data set were asked for, but its targets are {}",
          layout.target_kind == TargetKind::values ? "values" : "none");
  std::vector<int32_t> target(static_cast<size_t>(layout.target.elements()));
  SparseSample row;
  for (int64_t i = 0; i < set.size(); ++i) {
    if (set.sparse()) {
      set.sparse()->read(i, row);
      target[0] = static_cast<int32_t>(row.target);
    } else {
      set.read_target(i, std::as_writable_bytes(std::span(target)));
    }
    for (const int32_t label : target)
      if (label >= 0) use(i, static_cast<size_t>(label));
  }
}

}  // namespace

std::vector<int64_t> class_counts(const Dataset& set) {
  std::vector<int64_t> counts(static_cast<size_t>(set.layout().classes));
  for_each_label(set, [&](int64_t, size_t label) { ++counts[label]; });
  return counts;
}

std::vector<double> balanced_weights(const std::vector<int64_t>& counts) {
  const auto labels =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const auto classes = static_cast<double>(
      std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; }));
  std::vector<double> weights;
  for (const int64_t count : counts)
    weights.push_back(count > 0 ? labels / (classes * static_cast<double>(count)) : 1);
  return weights;
}

DatasetPtr balanced(DatasetPtr set, uint64_t seed) {
  require(set->layout().target.rank() == 0, ErrorKind::invalid_argument,
          "data.balanced: got samples with targets {}, expected one class for each",
          to_string(set->layout().target));
  std::vector<std::vector<int64_t>> of_class(static_cast<size_t>(set->layout().classes));
  for_each_label(*set, [&](int64_t sample, size_t label) { of_class[label].push_back(sample); });
  int64_t most = 0;
  for (const auto& samples : of_class) most = std::max(most, static_cast<int64_t>(samples.size()));
  std::vector<int64_t> all;
  for (size_t c = 0; c < of_class.size(); ++c) {
    const auto size = static_cast<int64_t>(of_class[c].size());
    if (size == 0) continue;
    const Permutation order(size, mix_key({seed, hash_name("balanced"), c}));
    for (int64_t i = 0; i < most; ++i)
      all.push_back(of_class[c][static_cast<size_t>(i < size ? i : order(i % size))]);
  }
  return subset(std::move(set), std::move(all));
}

}  // namespace artel::data
