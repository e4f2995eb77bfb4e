#include "trained_run.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/data/tables/table_encoder.h"
#include "artel/run/folder/run_folder.h"
#include "artel/run/samples/samples.h"
#include "artel/transfer/features.h"

namespace artel::python {
namespace {

namespace fs = std::filesystem;

// As many samples as take a few megabytes.
int64_t rows_at_a_time(const data::SampleLayout& layout) {
  constexpr int64_t kBytes = 16 << 20, kRows = 8192;
  return std::clamp<int64_t>(kBytes / std::max<int64_t>(1, layout.input.elements() * 4), 1, kRows);
}

// The run folder of a path; empty if it does not belong to a run.
fs::path folder_of(const fs::path& path) {
  require(fs::exists(path), ErrorKind::not_found,
          "[{}] no such file or folder, expected a run or weights", path.string());
  const std::optional<RunFolder> found = find_run(path);
  return found ? found->path() : fs::path();
}

void check_layout(const data::SampleLayout& got, const data::SampleLayout& expected) {
  require(got.input == expected.input && got.input_type == expected.input_type, ErrorKind::shape,
          "[x] got samples {} {}, expected {} {} as in training", to_string(got.input_type),
          to_string(got.input), to_string(expected.input_type), to_string(expected.input));
}

void unscale(Tensor& outputs, const data::TableEncoder& table) {
  const double offset = table.target_offset(), scale = table.target_scale();
  for (float& value : outputs.values<float>())
    value = static_cast<float>(offset + scale * static_cast<double>(value));
}

}  // namespace

TrainedRun::TrainedRun(RunSource source, GivenData given)
    : source_(std::move(source)), folder_(folder_of(source_.path)), given_(std::move(given)) {}

TrainedRun::TrainedRun(std::shared_ptr<Run> run, const RunResult& result, GivenData given)
    : source_({.path = result.folder.string()}),
      folder_(result.folder),
      summary_(result.summary),
      step_(result.fit.last.step),
      given_(std::move(given)),
      run_(std::move(run)) {}

const SavedRun& TrainedRun::saved() {
  if (!saved_)
    saved_ = run_ ? std::shared_ptr<const SavedRun>(run_, &run_->saved())
                  : std::make_shared<const SavedRun>(open_run(source_));
  return *saved_;
}

std::string TrainedRun::summary() const {
  const fs::path file = RunFolder(folder_).summary();
  if (!folder_.empty() && fs::exists(file)) return read_file(file);
  require(!summary_.empty(), ErrorKind::not_found,
          "[{}] has no summary.json: training has not ended", source_.path);
  return summary_;
}

std::string TrainedRun::config_text() {
  const MutexLock lock(mutex_);
  return to_toml(saved().config);
}

data::SampleLayout TrainedRun::layout() {
  const MutexLock lock(mutex_);
  return saved().layout;
}

NamedTensors TrainedRun::weights() {
  const MutexLock lock(mutex_);
  return saved().trainer->weights();
}

void TrainedRun::save(const fs::path& folder) {
  const MutexLock lock(mutex_);
  const SavedRun& run = saved();
  const RunFolder to(folder);
  fs::create_directories(folder);
  write_file_atomically(to.config(), to_toml(run.config));
  to.save_layout(run.layout);
  checkpoint::save_checkpoint(
      to.checkpoints(),
      checkpoint::Checkpoint{.step = step_, .weights = run.trainer->weights(), .optimizer = {}});
}

std::shared_ptr<TrainedRun> TrainedRun::measuring(const std::vector<std::string>& metrics) {
  const MutexLock lock(mutex_);
  const SavedRun& run = saved();
  auto measured = std::make_shared<SavedRun>(run.config, run.layout, metrics);
  measured->load(run.trainer->weights(), source_.path);
  measured->trained_on = run.trained_on;
  auto result = std::make_shared<TrainedRun>(run_, RunResult{.folder = folder_}, given_);
  const MutexLock other(result->mutex_);
  result->saved_ = std::move(measured);
  return result;
}

Tensor TrainedRun::predict(const data::Dataset& samples, const std::string& output) {
  const MutexLock lock(mutex_);
  const SavedRun& run = saved();
  check_layout(samples.layout(), run.layout);
  const int64_t batch = rows_at_a_time(run.layout);
  Tensor all;
  for (int64_t first = 0; first < samples.size(); first += batch) {
    const int64_t count = std::min(batch, samples.size() - first);
    const Tensor part = run.trainer->predict(read_rows(samples, first, count, run.augment), output);
    if (first == 0) {
      std::vector<int64_t> extents = part.shape().extents();
      extents[0] = samples.size();
      all = Tensor(Shape(extents), part.dtype());
    }
    std::memcpy(
        all.raw() + static_cast<size_t>(first) * (part.bytes() / static_cast<size_t>(count)),
        part.raw(), part.bytes());
  }
  const auto& table = run.layout.table;
  if (table && table->class_names().empty() && output == "prediction") unscale(all, *table);
  return all;
}

data::DatasetPtr TrainedRun::encoded(const data::Table& table, bool with_targets) {
  const std::shared_ptr<const data::TableEncoder> encoder = layout().table;
  require(encoder != nullptr, ErrorKind::invalid_argument,
          "[x] got a table, but the network was trained on arrays");
  std::vector<int64_t> rows(static_cast<size_t>(table.rows));
  std::iota(rows.begin(), rows.end(), 0);
  if (with_targets) return encoder->encode(table, rows);
  Tensor inputs({table.rows, encoder->width()});
  const std::span<float> values = inputs.values<float>();
  encoder->encode_pieces(table, rows, [&](int64_t first, std::span<const float> piece) {
    std::ranges::copy(piece, values.begin() + first * encoder->width());
  });
  return data::tensor_dataset(inputs, Tensor());
}

Evaluation TrainedRun::evaluate(const data::DatasetPtr& samples) {
  const MutexLock lock(mutex_);
  check_layout(samples->layout(), saved().layout);
  return saved().trainer->evaluate(samples, saved().augment);
}

Evaluation TrainedRun::evaluate(Part part) {
  const MutexLock lock(mutex_);
  const GivenDataScope scope(given_);
  return saved().evaluate(part);
}

Tensor TrainedRun::features(const data::Dataset& samples, const std::string& layer,
                            const std::string& pooling) {
  const MutexLock lock(mutex_);
  const SavedRun& run = saved();
  check_layout(samples.layout(), run.layout);
  const transfer::BaseNetwork base = {.name = folder_.string(),
                                      .model = run.config.model,
                                      .classes = run.layout.classes,
                                      .sample = run.sample(),
                                      .weights = run.trainer->weights()};
  transfer::FeatureRequest request = {.layers = {}, .pooling = transfer::pooling_by_name(pooling)};
  if (!layer.empty()) request.layers = {layer};
  transfer::Extractor extract(base, run.sample(), request, run.cluster->cores());
  return extract(samples, run.augment).layers.front();
}

TextSource TrainedRun::text_source() const {
  require(!source_.path.empty(), ErrorKind::not_found,
          "run: this worker does not have its folder; generate on worker 0");
  return {.path = weights_path(source_),
          .weights = source_.trained ? Weights::trained : Weights::averaged};
}

}  // namespace artel::python
