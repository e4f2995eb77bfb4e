#include "weighted.h"

#include <algorithm>

#include "artel/base/error.h"

namespace artel::python {
namespace {

class WeightedSamples final : public data::Dataset {
 public:
  WeightedSamples(data::DatasetPtr samples, Tensor weights)
      : samples_(std::move(samples)), weights_(std::move(weights)), layout_(samples_->layout()) {
    layout_.target_kind = data::TargetKind::values;
    layout_.target = {(classes() > 0 ? classes() : samples_->layout().target.elements()) + 1};
  }

  int64_t size() const override { return samples_->size(); }
  const data::SampleLayout& layout() const override { return layout_; }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    samples_->read(index, input, {});
    if (!target.empty()) read_target(index, target);
  }
  void read_target(int64_t index, std::span<std::byte> target) const override {
    float* const numbers = reinterpret_cast<float*>(target.data());
    const int64_t last = layout_.target.elements() - 1;
    if (classes() > 0) {
      int32_t label = 0;
      samples_->read_target(index, std::as_writable_bytes(std::span(&label, 1)));
      std::fill_n(numbers, last, 0.0f);
      numbers[label] = 1;
    } else {
      samples_->read_target(index, target.first(static_cast<size_t>(last) * sizeof(float)));
    }
    numbers[last] = weights_.elements() > 0 ? weights_.values<float>()[index] : 1.0f;
  }

 private:
  int64_t classes() const { return samples_->layout().classes; }

  data::DatasetPtr samples_;
  Tensor weights_;
  data::SampleLayout layout_;
};

}  // namespace

data::DatasetPtr weighted(data::DatasetPtr samples, const Tensor& weights) {
  require(weights.elements() == 0 || weights.elements() == samples->size(), ErrorKind::shape,
          "[sample_weight] got {} weights for {} samples", weights.elements(), samples->size());
  const data::SampleLayout& layout = samples->layout();
  require(layout.target_kind == data::TargetKind::values ||
              (layout.target_kind == data::TargetKind::classes && layout.target.rank() == 0),
          ErrorKind::unsupported,
          "[sample_weight] the samples have neither one class nor values as their target");
  return std::make_shared<WeightedSamples>(
      std::move(samples), weights.elements() > 0 ? weights.to(DType::f32) : weights);
}

}  // namespace artel::python
