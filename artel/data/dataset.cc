#include "artel/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "artel/base/random.h"
#include "artel/data/sampler.h"
#include "artel/data/tables/sparse_rows.h"

namespace artel::data {
namespace {

// Fills `output` with the values of type T that start at element `first` of a tensor.
template <typename T, typename Output>
void convert(const Tensor& tensor, int64_t first, std::span<Output> output, Output scale = 1) {
  const T* from = reinterpret_cast<const T*>(tensor.raw()) + first;
  for (size_t i = 0; i < output.size(); ++i) output[i] = static_cast<Output>(from[i]) * scale;
}

// The same for floating-point numbers of 16 bits.
void widen(const Tensor& tensor, int64_t first, std::span<float> output,
           float (*to_float)(uint16_t)) {
  const uint16_t* from = reinterpret_cast<const uint16_t*>(tensor.raw()) + first;
  std::transform(from, from + output.size(), output.begin(), to_float);
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
    case DType::boolean:
      return convert<uint8_t>(tensor, first, output);
    case DType::f16:
      return widen(tensor, first, output, half_to_float);
    case DType::bf16:
      return widen(tensor, first, output, bfloat16_to_float);
    case DType::i32:
    case DType::i64:
      break;
  }
  fail(ErrorKind::internal, "tokens read as numbers");
}

// NumPy's whole numbers have 64 bits, tokens 32.
void read_as_tokens(const Tensor& tensor, int64_t first, std::span<int32_t> output) {
  const int64_t* const from = tensor.values<int64_t>().data() + first;
  for (size_t i = 0; i < output.size(); ++i) {
    require(std::in_range<int32_t>(from[i]), ErrorKind::corrupt,
            "a token of the data set is {}, expected a number of 32 bits; whole numbers are read "
            "as tokens: save anything else as float32",
            from[i]);
    output[i] = static_cast<int32_t>(from[i]);
  }
}

// Samples with several labels may have ignored ones.
void check_labels(const Tensor& labels, int64_t classes) {
  const auto values = labels.values<int32_t>();
  const bool several = labels.shape().rank() > 1;
  for (size_t i = 0; i < values.size(); ++i)
    require((several && values[i] == kIgnoredTarget) || (values[i] >= 0 && values[i] < classes),
            ErrorKind::corrupt, "label {} of the data set is {}, expected 0 to {}{}", i, values[i],
            classes - 1, several ? fmt::format(" or {} (ignored)", kIgnoredTarget) : "");
}

// Converts labels to i32. Throws for labels that do not fit.
Tensor labels_of(const Tensor& targets) {
  if (targets.dtype() == DType::i64) {
    const auto values = targets.values<int64_t>();
    for (size_t i = 0; i < values.size(); ++i)
      require(values[i] >= INT32_MIN && values[i] <= INT32_MAX, ErrorKind::unsupported,
              "label {} of the data set is {}, expected a class number below 2^31", i, values[i]);
  }
  return targets.to(DType::i32);
}

class TensorDataset : public Dataset {
 public:
  TensorDataset(Tensor inputs, Tensor targets, int64_t classes,
                std::vector<std::string> class_names, std::shared_ptr<const Tokenizer> tokenizer,
                std::shared_ptr<const TableEncoder> table)
      : inputs_(std::move(inputs)) {
    layout_.tokenizer = std::move(tokenizer);
    layout_.table = std::move(table);
    const Shape& shape = inputs_.shape();
    require(shape.rank() >= 1, ErrorKind::shape, "a data set needs inputs of rank 1 or more");
    layout_.input = row_shape(shape);
    layout_.input_type = is_token_type(inputs_.dtype()) ? DType::i32 : DType::f32;
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
    targets_ = targets.dtype() == DType::i32 ? targets : labels_of(targets);
    const auto labels = targets_.values<int32_t>();
    if (classes == 0 && !labels.empty())
      classes = int64_t{*std::max_element(labels.begin(), labels.end())} + 1;
    check_labels(targets_, classes);
    layout_.classes = classes;
    layout_.class_names = std::move(class_names);
  }

  int64_t size() const override { return inputs_.shape()[0]; }
  const SampleLayout& layout() const override { return layout_; }

  void read_target(int64_t index, std::span<std::byte> target) const override {
    std::memcpy(target.data(), targets_.raw() + index * target.size(), target.size());
  }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    const int64_t first = index * layout_.input.elements();
    if (inputs_.dtype() == DType::i64)
      read_as_tokens(inputs_, first, as<int32_t>(input));
    else if (inputs_.dtype() == DType::i32)
      std::memcpy(input.data(), inputs_.raw() + first * sizeof(int32_t), input.size());
    else
      read_as_float(inputs_, first, as<float>(input));
    if (!target.empty()) read_target(index, target);
  }

 private:
  static Shape row_shape(const Shape& shape) {
    return Shape(std::vector<int64_t>(shape.extents().begin() + 1, shape.extents().end()));
  }

  Tensor inputs_, targets_;
  SampleLayout layout_;
};

class SparseSubset final : public SparseRows {
 public:
  SparseSubset(const SparseRows& rows, const std::vector<int64_t>& samples)
      : rows_(rows), samples_(samples) {}

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  int64_t features() const override { return rows_.features(); }
  void read(int64_t index, SparseSample& sample) const override {
    rows_.read(samples_[index], sample);
  }

 private:
  const SparseRows& rows_;
  const std::vector<int64_t>& samples_;
};

class Subset : public Dataset {
 public:
  Subset(DatasetPtr set, std::vector<int64_t> samples)
      : set_(std::move(set)), samples_(std::move(samples)) {
    for (const int64_t sample : samples_)
      require(sample >= 0 && sample < set_->size(), ErrorKind::invalid_argument,
              "sample {} of a data set of {}", sample, set_->size());
    if (set_->sparse()) sparse_.emplace(*set_->sparse(), samples_);
  }

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  const SampleLayout& layout() const override { return set_->layout(); }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    set_->read(samples_[index], input, target);
  }
  void read_target(int64_t index, std::span<std::byte> target) const override {
    set_->read_target(samples_[index], target);
  }
  std::string name(int64_t index) const override { return set_->name(samples_[index]); }
  const SparseRows* sparse() const override { return sparse_ ? &*sparse_ : nullptr; }

 private:
  DatasetPtr set_;
  std::vector<int64_t> samples_;
  std::optional<SparseSubset> sparse_;
};

class Joined final : public Dataset {
 public:
  explicit Joined(const std::vector<std::pair<std::string, DatasetPtr>>& sets) {
    require(!sets.empty(), ErrorKind::invalid_argument,
            "[join_inputs] got no data sets, expected one or more");
    layout_ = sets.front().second->layout();
    layout_.parts.clear();
    int64_t elements = 0;
    for (const auto& [name, set] : sets) {
      sets_.push_back(set);
      const SampleLayout& own = set->layout();
      require(set->size() == size(), ErrorKind::shape,
              "input '{}' has {} samples, expected {} as '{}' has", name, set->size(), size(),
              sets.front().first);
      require(own.input_type == layout_.input_type, ErrorKind::shape,
              "input '{}' holds {}, expected {} like '{}': the inputs of a sample are all numbers "
              "(f32) or all tokens (whole numbers)",
              name, to_string(own.input_type), to_string(layout_.input_type), sets.front().first);
      const bool taken = std::ranges::count(layout_.parts, name, &InputPart::name) > 0;
      require(!name.empty() && !taken, ErrorKind::invalid_argument,
              "[join_inputs] got an input named '{}', expected a name for each, and each once",
              name);
      layout_.parts.push_back({name, own.input});
      elements += own.input.elements();
      unused_ = std::max(unused_, own.target_bytes());
    }
    layout_.input = {elements};
  }

  int64_t size() const override { return sets_.front()->size(); }
  const SampleLayout& layout() const override { return layout_; }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    std::vector<int64_t> unused(unused_ / sizeof(int64_t) + 1);
    for (const DatasetPtr& set : sets_) {
      const SampleLayout& own = set->layout();
      const auto ignored = std::as_writable_bytes(std::span(unused)).first(own.target_bytes());
      set->read(index, input.first(own.input_bytes()), set == sets_.front() ? target : ignored);
      input = input.subspan(own.input_bytes());
    }
  }

 private:
  std::vector<DatasetPtr> sets_;
  SampleLayout layout_;
  size_t unused_ = 0;  // bytes of the targets of all but the first
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

SplitSamples divided(const std::vector<bool>& for_tests) {
  SplitSamples samples;
  for (size_t i = 0; i < for_tests.size(); ++i)
    (for_tests[i] ? samples.test : samples.train).push_back(static_cast<int64_t>(i));
  return samples;
}

}  // namespace

void Dataset::read_target(int64_t index, std::span<std::byte> target) const {
  std::vector<int64_t> input((layout().input_bytes() + sizeof(int64_t) - 1) / sizeof(int64_t));
  read(index, std::as_writable_bytes(std::span(input)).first(layout().input_bytes()), target);
}

bool is_token_type(DType type) { return type == DType::i32 || type == DType::i64; }

DatasetPtr tensor_dataset(Tensor inputs, Tensor targets, int64_t classes,
                          std::vector<std::string> class_names,
                          std::shared_ptr<const Tokenizer> tokenizer,
                          std::shared_ptr<const TableEncoder> table) {
  return std::make_shared<TensorDataset>(std::move(inputs), std::move(targets), classes,
                                         std::move(class_names), std::move(tokenizer),
                                         std::move(table));
}

DatasetPtr join_inputs(const std::vector<std::pair<std::string, DatasetPtr>>& sets) {
  return std::make_shared<Joined>(sets);
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

namespace {

// The class of each sample, or nothing if samples have no or several classes.
std::vector<double> classes_of(const Dataset& set) {
  const SampleLayout& layout = set.layout();
  if (layout.target_kind != TargetKind::classes || layout.target.elements() != 1 || set.sparse())
    return {};
  std::vector<double> classes;
  int32_t label = 0;
  for (int64_t i = 0; i < set.size(); ++i) {
    set.read_target(i, std::as_writable_bytes(std::span(&label, 1)));
    classes.push_back(label);
  }
  return classes;
}

// True if there are almost as many strata as samples, so that stratifying is useless.
bool are_too_many(std::span<const double> strata) {
  constexpr size_t kMostOfSamples = 4;
  const std::set<double> kinds(strata.begin(), strata.end());
  return kMostOfSamples * kinds.size() > strata.size();
}

// The samples of each stratum in random order. Without strata, all samples are one group.
using Groups = std::map<double, std::vector<int64_t>>;
Groups random_groups(int64_t size, uint64_t key, std::span<const double> strata) {
  if (are_too_many(strata)) strata = {};
  const Permutation order(size, key);
  Groups groups;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t sample = order(i);
    groups[strata.empty() ? 0 : strata[static_cast<size_t>(sample)]].push_back(sample);
  }
  return groups;
}

}  // namespace

SplitSamples split_samples(int64_t size, double test_fraction, uint64_t seed,
                           std::span<const double> strata) {
  require(test_fraction >= 0 && test_fraction < 1, ErrorKind::invalid_argument,
          "the test fraction is {}, expected 0 or more and less than 1", test_fraction);
  const Groups groups = random_groups(size, mix_key({seed, hash_name("split")}), strata);
  std::vector<bool> for_tests(static_cast<size_t>(size), false);
  // Rounding the running total instead of each share keeps the sum right.
  double wanted = 0;
  int64_t taken = 0;
  for (const auto& [stratum, samples] : groups) {
    wanted += static_cast<double>(samples.size()) * test_fraction;
    const int64_t tests = std::llround(wanted) - taken;
    for (int64_t i = 0; i < tests; ++i)
      for_tests[static_cast<size_t>(samples[static_cast<size_t>(i)])] = true;
    taken += tests;
  }
  return divided(for_tests);
}

Split split(DatasetPtr set, double test_fraction, uint64_t seed) {
  SplitSamples samples = split_samples(set->size(), test_fraction, seed, classes_of(*set));
  return {subset(set, std::move(samples.train)), subset(set, std::move(samples.test))};
}

DatasetPtr drawn(DatasetPtr set, int64_t samples, uint64_t seed) {
  if (samples >= set->size()) return set;
  const double share = static_cast<double>(samples) / static_cast<double>(set->size());
  std::vector<int64_t> chosen =
      split_samples(set->size(), share, mix_key({seed, hash_name("drawn")}), classes_of(*set)).test;
  return subset(std::move(set), std::move(chosen));
}

Split split_fold(DatasetPtr set, int64_t folds, int64_t fold, uint64_t seed) {
  const int64_t size = set->size();
  require(
      folds >= 2 && folds <= size && fold >= 0 && fold < folds, ErrorKind::invalid_argument,
      "fold {} of {}: expected 2 folds or more, at most one for each of the {} samples, counted "
      "from 0",
      fold, folds, size);
  std::vector<bool> for_tests(static_cast<size_t>(size), false);
  int64_t dealt = 0;  // samples are dealt to the folds in turn, class after class
  for (const auto& [stratum, group] :
       random_groups(size, mix_key({seed, hash_name("folds")}), classes_of(*set)))
    for (const int64_t sample : group)
      if (dealt++ % folds == fold) for_tests[static_cast<size_t>(sample)] = true;
  SplitSamples samples = divided(for_tests);
  return {subset(set, std::move(samples.train)), subset(set, std::move(samples.test))};
}

}  // namespace artel::data
