#include "artel/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "artel/base/random.h"
#include "artel/data/sampler.h"

namespace artel::data {
namespace {

// Fills `output` with the values of type T that start at element `first` of a tensor.
template <typename T, typename Output>
void convert(const Tensor& tensor, int64_t first, std::span<Output> output, Output scale = 1) {
  const T* from = reinterpret_cast<const T*>(tensor.raw()) + first;
  for (size_t i = 0; i < output.size(); ++i) output[i] = static_cast<Output>(from[i]) * scale;
}

template <typename T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

void read_as_float(const Tensor& tensor, int64_t first, std::span<float> output) {
  switch (tensor.dtype()) {
    case DType::u8:
      return convert<uint8_t>(tensor, first, output, 1.0f / 255.0f);
    case DType::f32:
      return convert<float>(tensor, first, output);
    case DType::f64:
      return convert<double>(tensor, first, output);
    case DType::i8:
      return convert<int8_t>(tensor, first, output);
    case DType::i16:
      return convert<int16_t>(tensor, first, output);
    case DType::i64:
      return convert<int64_t>(tensor, first, output);
    default:
      fail(ErrorKind::unsupported, "a data set of type {}; convert it to f32",
           to_string(tensor.dtype()));
  }
}

void check_labels(const Tensor& labels, int64_t classes) {
  const auto values = labels.values<int32_t>();
  for (size_t i = 0; i < values.size(); ++i)
    require(values[i] >= 0 && values[i] < classes, ErrorKind::corrupt,
            "label {} of the data set is {}, expected 0 to {}", i, values[i], classes - 1);
}

class TensorDataset : public Dataset {
 public:
  TensorDataset(Tensor inputs, Tensor targets, int64_t classes,
                std::vector<std::string> class_names, std::shared_ptr<const Tokenizer> tokenizer)
      : inputs_(std::move(inputs)) {
    layout_.tokenizer = std::move(tokenizer);
    const Shape& shape = inputs_.shape();
    require(shape.rank() >= 1, ErrorKind::shape, "a data set needs inputs of rank 1 or more");
    layout_.input = row_shape(shape);
    layout_.input_type = inputs_.dtype() == DType::i32 ? DType::i32 : DType::f32;
    if (targets.elements() == 0 && shape[0] > 0) {
      layout_.target_kind = TargetKind::none;
      return;
    }
    require(targets.shape().rank() >= 1 && targets.shape()[0] == shape[0], ErrorKind::shape,
            "inputs of shape {} with targets of shape {}: the numbers of samples differ",
            to_string(shape), to_string(targets.shape()));
    layout_.target = row_shape(targets.shape());
    if (is_floating(targets.dtype())) {
      layout_.target_kind = TargetKind::values;
      targets_ = targets.dtype() == DType::f32 ? targets : targets.to(DType::f32);
      return;
    }
    targets_ = targets.dtype() == DType::i32 ? targets : targets.to(DType::i32);
    const auto labels = targets_.values<int32_t>();
    if (classes == 0 && !labels.empty())
      classes = int64_t{*std::max_element(labels.begin(), labels.end())} + 1;
    check_labels(targets_, classes);
    layout_.classes = classes;
    layout_.class_names = std::move(class_names);
  }

  int64_t size() const override { return inputs_.shape()[0]; }
  const SampleLayout& layout() const override { return layout_; }

  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    const int64_t first = index * layout_.input.elements();
    if (layout_.input_type == DType::i32)
      std::memcpy(input.data(), inputs_.raw() + first * sizeof(int32_t), input.size());
    else
      read_as_float(inputs_, first, as<float>(input));
    if (!target.empty())
      std::memcpy(target.data(), targets_.raw() + index * target.size(), target.size());
  }

 private:
  static Shape row_shape(const Shape& shape) {
    return Shape(std::vector<int64_t>(shape.extents().begin() + 1, shape.extents().end()));
  }

  Tensor inputs_, targets_;
  SampleLayout layout_;
};

class Subset : public Dataset {
 public:
  Subset(DatasetPtr set, std::vector<int64_t> samples)
      : set_(std::move(set)), samples_(std::move(samples)) {
    for (const int64_t sample : samples_)
      require(sample >= 0 && sample < set_->size(), ErrorKind::invalid_argument,
              "sample {} of a data set of {}", sample, set_->size());
  }

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  const SampleLayout& layout() const override { return set_->layout(); }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    set_->read(samples_[index], input, target);
  }

 private:
  DatasetPtr set_;
  std::vector<int64_t> samples_;
};

class Reconstruction final : public Dataset {
 public:
  explicit Reconstruction(DatasetPtr set) : set_(std::move(set)), layout_(set_->layout()) {
    layout_.target_kind = TargetKind::values;
    layout_.target = layout_.input;
    layout_.classes = 0;
    layout_.class_names.clear();
  }

  int64_t size() const override { return set_->size(); }
  const SampleLayout& layout() const override { return layout_; }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    std::vector<int64_t> unused(set_->layout().target_bytes() / sizeof(int64_t) + 1);
    set_->read(index, input,
               std::as_writable_bytes(std::span(unused)).first(set_->layout().target_bytes()));
    std::copy(input.begin(), input.end(), target.begin());
  }

 private:
  DatasetPtr set_;
  SampleLayout layout_;
};

}  // namespace

DatasetPtr tensor_dataset(Tensor inputs, Tensor targets, int64_t classes,
                          std::vector<std::string> class_names,
                          std::shared_ptr<const Tokenizer> tokenizer) {
  return std::make_shared<TensorDataset>(std::move(inputs), std::move(targets), classes,
                                         std::move(class_names), std::move(tokenizer));
}

DatasetPtr subset(DatasetPtr set, std::vector<int64_t> samples) {
  return std::make_shared<Subset>(std::move(set), std::move(samples));
}

DatasetPtr reconstruction(DatasetPtr set) {
  require(set->layout().input_type == DType::f32, ErrorKind::invalid_argument,
          "only numbers can be reconstructed: got samples of {}, expected f32",
          to_string(set->layout().input_type));
  return std::make_shared<Reconstruction>(std::move(set));
}

SplitSamples split_samples(int64_t size, double test_fraction, uint64_t seed) {
  require(test_fraction >= 0 && test_fraction < 1, ErrorKind::invalid_argument,
          "the test fraction is {}, expected 0 or more and less than 1", test_fraction);
  const int64_t tests = std::llround(static_cast<double>(size) * test_fraction);
  const Permutation order(size, mix_key({seed, hash_name("split")}));
  SplitSamples samples;
  for (int64_t i = 0; i < size; ++i) (i < tests ? samples.test : samples.train).push_back(order(i));
  std::sort(samples.test.begin(), samples.test.end());
  std::sort(samples.train.begin(), samples.train.end());
  return samples;
}

Split split(DatasetPtr set, double test_fraction, uint64_t seed) {
  SplitSamples samples = split_samples(set->size(), test_fraction, seed);
  return {subset(set, std::move(samples.train)), subset(set, std::move(samples.test))};
}

}  // namespace artel::data
