#include "artel/data/tables/libsvm.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/data/tables/number.h"

namespace artel::data {
namespace {

constexpr int64_t kMaxIndex = int64_t{1} << 40;
constexpr int64_t kMaxDense = 1 << 20;
constexpr size_t kMostTargets = 1000, kMostClasses = 100;

// Parses one line; `where` starts the message of an error.
class LineParser {
 public:
  LineParser(std::string_view line, const std::string& file, int64_t number)
      : rest_(trim(line.substr(0, line.find('#')))), file_(file), number_(number) {}

  bool empty() const { return rest_.empty(); }

  // Indices as written, but ascending and without duplicates.
  void parse(SparseSample& sample) {
    sample.features.clear();
    sample.values.clear();
    target_ = number(word());
    sample.target = to_float(target_);
    while (!rest_.empty()) {
      const std::string_view pair = word();
      const size_t colon = pair.find(':');
      require(colon != std::string_view::npos, ErrorKind::corrupt,
              "[{}] line {}: got '{}', expected index:value", file_, number_, pair);
      sample.features.push_back(index(pair.substr(0, colon)));
      sample.values.push_back(to_float(number(pair.substr(colon + 1))));
      require(sample.features.back() >= 0 && sample.features.back() <= kMaxIndex,
              ErrorKind::corrupt, "[{}] line {}: the index {} is not between 0 and {}", file_,
              number_, sample.features.back(), kMaxIndex);
    }
    const std::vector<int64_t>& features = sample.features;
    if (std::adjacent_find(features.begin(), features.end(), std::greater_equal()) !=
        features.end())
      sort_and_add(sample);
  }

  // The target of the sample before rounding.
  double target() const { return target_; }

 private:
  std::string_view word() {
    const std::string_view result = rest_.substr(0, rest_.find_first_of(" \t"));
    rest_ = trim(rest_.substr(result.size()));
    return result;
  }

  double number(std::string_view text) const {
    const std::optional<double> value = parse_number(text);
    require(value && std::isfinite(*value), ErrorKind::corrupt,
            "[{}] line {}: '{}' is not a number", file_, number_, text);
    return *value;
  }

  int64_t index(std::string_view text) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    require(error == std::errc() && end == text.data() + text.size(), ErrorKind::corrupt,
            "[{}] line {}: '{}' is not a number", file_, number_, text);
    return value;
  }

  float to_float(double value) const {
    const auto rounded = static_cast<float>(value);
    require(std::isfinite(rounded), ErrorKind::corrupt,
            "[{}] line {}: {} is too large for 32-bit numbers", file_, number_, value);
    return rounded;
  }

  void sort_and_add(SparseSample& sample) const {
    std::vector<size_t> order(sample.features.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return sample.features[a] < sample.features[b]; });
    SparseSample sorted{sample.target, {}, {}};
    for (const size_t i : order) {
      if (sorted.features.empty() || sorted.features.back() != sample.features[i]) {
        sorted.features.push_back(sample.features[i]);
        sorted.values.push_back(sample.values[i]);
      } else {
        sorted.values.back() = to_float(double{sorted.values.back()} + sample.values[i]);
      }
    }
    sample = std::move(sorted);
  }

  std::string_view rest_;
  const std::string& file_;
  int64_t number_;
  double target_ = 0;
};

std::string_view line_at(std::string_view text, uint64_t offset) {
  const std::string_view rest = text.substr(offset);
  return rest.substr(0, rest.find('\n'));
}

class LibsvmSet final : public Dataset, private SparseRows {
 public:
  LibsvmSet(std::shared_ptr<const SparseFile> file, int64_t features, std::vector<float> classes)
      : file_(std::move(file)), classes_(std::move(classes)) {
    layout_.input = {features};
    layout_.first_index = file_->first_index();
    if (classes_.empty()) {
      layout_.target_kind = TargetKind::values;
      return;
    }
    layout_.classes = static_cast<int64_t>(classes_.size());
    for (const float target : classes_) layout_.class_names.push_back(fmt::format("{}", target));
  }

  int64_t size() const override { return file_->size(); }
  const SampleLayout& layout() const override { return layout_; }
  const SparseRows* sparse() const override { return this; }

  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    require(layout_.input[0] <= kMaxDense, ErrorKind::memory,
            "[{}] has {} features; more than {} do not fit into dense samples", file_->name(),
            layout_.input[0], kMaxDense);
    SparseSample sample;
    file_->read(index, sample);
    auto* values = reinterpret_cast<float*>(input.data());
    std::fill_n(values, layout_.input[0], 0.0f);
    for (size_t i = 0; i < sample.features.size(); ++i)
      values[sample.features[i]] = sample.values[i];
    if (classes_.empty()) {
      std::memcpy(target.data(), &sample.target, sizeof sample.target);
      return;
    }
    const int32_t label = class_of(index, sample);
    std::memcpy(target.data(), &label, sizeof label);
  }

 private:
  int64_t features() const override { return file_->features(); }

  void read(int64_t index, SparseSample& sample) const override {
    file_->read(index, sample);
    if (!classes_.empty()) sample.target = static_cast<float>(class_of(index, sample));
  }

  int32_t class_of(int64_t index, const SparseSample& sample) const {
    const auto place = std::lower_bound(classes_.begin(), classes_.end(), sample.target);
    require(place != classes_.end() && *place == sample.target, ErrorKind::corrupt,
            "sample {}: the class {} is not among those of the training file", index,
            sample.target);
    return static_cast<int32_t>(place - classes_.begin());
  }

  std::shared_ptr<const SparseFile> file_;
  std::vector<float> classes_;
  SampleLayout layout_;
};

std::vector<float> classes_of(const SparseFile& file) {
  const std::vector<float>& targets = file.targets();
  const bool whole = std::all_of(targets.begin(), targets.end(),
                                 [](float target) { return target == std::floor(target); });
  return whole && targets.size() <= kMostClasses ? targets : std::vector<float>();
}

}  // namespace

SparseFile::SparseFile(Bytes bytes) : bytes_(std::move(bytes)) {
  const std::string_view text = bytes_.text();
  int64_t number = 0;
  std::set<double> targets;
  SparseSample sample;
  for (uint64_t offset = 0; offset < text.size();) {
    const std::string_view line = line_at(text, offset);
    LineParser parser(line, bytes_.name, ++number);
    if (!parser.empty()) {
      parser.parse(sample);
      lines_.push_back(offset);
      if (targets.size() <= kMostTargets) targets.insert(parser.target());
      if (!sample.features.empty()) {
        if (sample.features.front() == 0) first_index_ = 0;
        largest_ = std::max(largest_, sample.features.back());
      }
    }
    offset += line.size() + 1;
  }
  if (targets.size() > kMostTargets) return;
  for (const double target : targets) {
    const auto rounded = static_cast<float>(target);
    if (!targets_.empty() && targets_.back() == rounded) {
      require(target != std::floor(target), ErrorKind::unsupported,
              "[{}] the target {} is too large: 32-bit numbers cannot tell it from its neighbour; "
              "number the classes from 0",
              bytes_.name, target);
      continue;
    }
    targets_.push_back(rounded);
  }
}

void SparseFile::count_from(int64_t first_index) {
  require(first_index == 0 || first_index == 1, ErrorKind::invalid_argument,
          "[{}] first index: got {}, expected 0 or 1", bytes_.name, first_index);
  require(first_index <= first_index_, ErrorKind::corrupt,
          "[{}] has an index 0, but indices of this data set start at 1", bytes_.name);
  first_index_ = first_index;
}

void SparseFile::read(int64_t index, SparseSample& sample) const {
  LineParser(line_at(bytes_.text(), lines_.at(index)), bytes_.name, index + 1).parse(sample);
  for (int64_t& feature : sample.features) feature -= first_index_;
}

int64_t common_first_index(const std::vector<const SparseFile*>& files) {
  for (const SparseFile* file : files) {
    if (file->first_index() > 0) continue;
    log(LogLevel::info, "{}: an index is 0, so all indices of this set count from 0", file->name());
    return 0;
  }
  log(LogLevel::info, "{}: no index is 0, so all indices of this set count from 1",
      files.front()->name());
  return 1;
}

Split libsvm(const std::filesystem::path& train, const std::filesystem::path& test,
             double test_fraction, uint64_t seed, bool values) {
  std::vector<std::shared_ptr<SparseFile>> files;
  std::vector<const SparseFile*> all;
  for (const std::filesystem::path& path : {train, test}) {
    if (path.empty()) continue;
    files.push_back(std::make_shared<SparseFile>(map_file(path)));
    all.push_back(files.back().get());
  }
  const int64_t first_index = common_first_index(all);
  int64_t features = 0;
  for (const auto& file : files) {
    file->count_from(first_index);
    features = std::max(features, file->features());
  }
  const std::shared_ptr<SparseFile> train_file = files[0];
  require(train_file->size() > 0, ErrorKind::corrupt, "[{}] holds no samples", train.string());
  const std::vector<float> classes = values ? std::vector<float>() : classes_of(*train_file);
  const auto whole = std::make_shared<LibsvmSet>(train_file, features, classes);
  if (files.size() == 1) return split(whole, test_fraction, seed);
  return {whole, std::make_shared<LibsvmSet>(files[1], features, classes)};
}

}  // namespace artel::data
