#include "artel/train/loop/mistake_collector.h"

#include <algorithm>
#include <cmath>

#include "artel/predict/class_shares.h"

namespace artel {
namespace {

// A total order, so that the kept mistakes do not depend on the order of discovery.
bool is_worse(const Mistake& a, const Mistake& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.sample < b.sample;
}

// The class with the largest score, the first one of equals. A single score is that of class 1
// against class 0.
int64_t answer_of(std::span<const float> scores) {
  if (scores.size() == 1) return scores[0] > 0 ? 1 : 0;
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

void keep_worst(std::vector<Mistake>& mistakes, size_t most) {
  std::sort(mistakes.begin(), mistakes.end(), is_worse);
  mistakes.resize(std::min(mistakes.size(), most));
}

}  // namespace

MistakeCollector::MistakeCollector(int64_t most, const data::SampleLayout& layout)
    : most_(static_cast<size_t>(most)) {
  if (layout.target_kind != data::TargetKind::classes || layout.target.rank() != 0) most_ = 0;
}

void MistakeCollector::add(const data::Batch& batch, const Tensor& scores) {
  if (scores.shape().rank() != 2 || scores.dtype() != DType::f32) return;
  const auto classes = static_cast<size_t>(scores.shape()[1]);
  const std::span<const int32_t> labels = batch.y.values<int32_t>();
  for (size_t row = 0; row < labels.size(); ++row) {
    const std::span<const float> own = scores.values<float>().subspan(row * classes, classes);
    const int64_t answer = answer_of(own);
    if (labels[row] < 0 || answer == labels[row]) continue;  // ignored or correct
    const double probability = class_shares(own)[static_cast<size_t>(answer)];
    if (!std::isfinite(probability)) continue;
    mistakes_.push_back({batch.samples[row], labels[row], answer, probability});
  }
  keep_worst(mistakes_, most_);
}

std::vector<Mistake> MistakeCollector::gather(comm::Group* group) const {
  if (!group || !wants_any()) return mistakes_;
  std::vector<Mistake> own = mistakes_;
  own.resize(most_, {.probability = -1});  // fill the unused entries
  std::vector<Mistake> all(most_ * static_cast<size_t>(group->size()));
  group->all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)), {},
                    {.label = "mistakes"});
  std::erase_if(all, [](const Mistake& mistake) { return mistake.probability < 0; });
  keep_worst(all, most_);
  return all;
}

}  // namespace artel
