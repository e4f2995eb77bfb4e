#include "artel/data/libsvm.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "artel/base/text.h"

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

  // Indices as they are written.
  void parse(SparseSample& sample) {
    sample.features.clear();
    sample.values.clear();
    sample.target = number<float>(word());
    while (!rest_.empty()) {
      const std::string_view pair = word();
      const size_t colon = pair.find(':');
      require(colon != std::string_view::npos, ErrorKind::corrupt,
              "[{}] line {}: got '{}', expected index:value", file_, number_, pair);
      sample.features.push_back(number<int64_t>(pair.substr(0, colon)));
      sample.values.push_back(number<float>(pair.substr(colon + 1)));
      require(sample.features.back() >= 0 && sample.features.back() <= kMaxIndex,
              ErrorKind::corrupt, "[{}] line {}: the index {} is not between 0 and {}", file_,
              number_, sample.features.back(), kMaxIndex);
    }
  }

 private:
  std::string_view word() {
    const std::string_view result = rest_.substr(0, rest_.find_first_of(" \t"));
    rest_ = trim(rest_.substr(result.size()));
    return result;
  }

  template <typename T>
  T number(std::string_view text) const {
    if (text.starts_with('+')) text.remove_prefix(1);
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    require(error == std::errc() && end == text.data() + text.size() &&
                std::isfinite(static_cast<double>(value)),
            ErrorKind::corrupt, "[{}] line {}: '{}' is not a number", file_, number_, text);
    return value;
  }

  std::string_view rest_;
  const std::string& file_;
  int64_t number_;
};

std::string_view line_at(std::string_view text, uint64_t offset) {
  const std::string_view rest = text.substr(offset);
  return rest.substr(0, rest.find('\n'));
}

class DenseView : public Dataset {
 public:
  DenseView(std::shared_ptr<const SparseFile> file, int64_t features, std::vector<float> classes)
      : file_(std::move(file)), classes_(std::move(classes)) {
    layout_.input = {features};
    if (classes_.empty()) {
      layout_.target_kind = TargetKind::values;
      return;
    }
    layout_.classes = static_cast<int64_t>(classes_.size());
    for (const float target : classes_) layout_.class_names.push_back(fmt::format("{}", target));
  }

  int64_t size() const override { return file_->size(); }
  const SampleLayout& layout() const override { return layout_; }

  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
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
    const auto place = std::lower_bound(classes_.begin(), classes_.end(), sample.target);
    require(place != classes_.end() && *place == sample.target, ErrorKind::corrupt,
            "sample {}: the class {} is not among those of the training file", index,
            sample.target);
    const auto label = static_cast<int32_t>(place - classes_.begin());
    std::memcpy(target.data(), &label, sizeof label);
  }

 private:
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
  int64_t smallest = kMaxIndex, largest = -1, number = 0;
  std::set<float> targets;
  SparseSample sample;
  for (uint64_t offset = 0; offset < text.size();) {
    const std::string_view line = line_at(text, offset);
    LineParser parser(line, bytes_.name, ++number);
    if (!parser.empty()) {
      parser.parse(sample);
      lines_.push_back(offset);
      if (targets.size() <= kMostTargets) targets.insert(sample.target);
      for (const int64_t feature : sample.features) {
        smallest = std::min(smallest, feature);
        largest = std::max(largest, feature);
      }
    }
    offset += line.size() + 1;
  }
  first_index_ = smallest == 0 ? 0 : 1;
  features_ = largest < 0 ? 0 : largest - first_index_ + 1;
  if (targets.size() <= kMostTargets) targets_.assign(targets.begin(), targets.end());
}

void SparseFile::read(int64_t index, SparseSample& sample) const {
  LineParser(line_at(bytes_.text(), lines_.at(index)), bytes_.name, index + 1).parse(sample);
  for (int64_t& feature : sample.features) feature -= first_index_;
}

Split libsvm(const std::filesystem::path& train, const std::filesystem::path& test,
             double test_fraction, uint64_t seed) {
  auto train_file = std::make_shared<const SparseFile>(map_file(train));
  std::shared_ptr<const SparseFile> test_file;
  int64_t features = train_file->features();
  if (!test.empty()) {
    test_file = std::make_shared<const SparseFile>(map_file(test));
    features = std::max(features, test_file->features());
  }
  require(train_file->size() > 0, ErrorKind::corrupt, "[{}] holds no samples", train.string());
  require(features <= kMaxDense, ErrorKind::memory,
          "[{}] has {} features; more than {} do not fit into dense samples", train.string(),
          features, kMaxDense);
  const std::vector<float> classes = classes_of(*train_file);
  const auto whole = std::make_shared<DenseView>(train_file, features, classes);
  if (!test_file) return split(whole, test_fraction, seed);
  return {whole, std::make_shared<DenseView>(test_file, features, classes)};
}

}  // namespace artel::data
