#include "artel/train/step/teacher.h"

#include <cstring>

#include "artel/base/digest.h"
#include "artel/base/error.h"
#include "artel/exec/libraries.h"
#include "artel/predict/batches.h"
#include "artel/predict/load_weights.h"
#include "artel/train/step/stepper.h"

namespace artel {
namespace {

constexpr int64_t kKeptRows = 64;  // computed at a time

Shape without_batch(const Shape& shape) {
  return Shape({shape.extents().begin() + 1, shape.extents().end()});
}

}  // namespace

void Teacher::limit_threads() { limit_library_threads(); }

Teacher::Teacher(Model outputs, const TensorType& sample, NamedTensors weights,
                 const nn::DistillationOptions& options)
    : model_(std::move(outputs)), sample_(sample), weights_(std::move(weights)), options_(options) {
  const Program& one = program(1);
  parameters_ = Parameters(one.parameter_entries());
  load_weights(parameters_, weights_);
  output_ = without_batch(one.graph().type(one.graph().output_id("prediction")).shape);
  const std::string text =
      fmt::format("{}\n{}", to_string(one.graph()), sha256(std::as_bytes(parameters_.block())));
  identity_ = fmt::format("{} temperature {} weight {}", sha256(std::as_bytes(std::span(text))),
                          options_.temperature, options_.weight);
}

int64_t Teacher::parameter_count() const {
  int64_t count = 0;
  for (const ParameterEntry& entry : parameters_.entries())
    if (!entry.is_state) count += entry.shape.elements();
  return count;
}

void Teacher::keep(const data::Dataset& set, const data::Augmentation& prepare,
                   const std::string& key, int threads) {
  kept_ = kept_features({.below = model_,
                         .sample = sample_,
                         .weights = weights_,
                         .key = key + "\nteacher",
                         .rows = kKeptRows,
                         .threads = threads},
                        set, prepare);
}

const Program& Teacher::program(int64_t rows) {
  std::unique_ptr<Program>& found = programs_[rows];
  if (!found)
    found = std::make_unique<Program>(inference_graph(model_, batch_of(sample_, rows)).graph,
                                      CompileOptions{}, choices_);
  return *found;
}

void Teacher::compute(Place& place, const Tensor& x, Tensor to) {
  const int64_t rows = x.shape()[0];
  std::unique_ptr<Frame>& frame = place.frames[rows];
  const Program& compiled = *programs_.at(rows);
  if (!frame) frame = std::make_unique<Frame>(compiled, parameters_);
  frame->set_input("x", x);
  compiled.run(*frame, place.serial, {});
  const Tensor outputs = frame->output("prediction");
  std::memcpy(to.raw(), outputs.raw(), outputs.bytes());
}

Tensor Teacher::read_kept(const data::Batch& batch) const {
  Tensor result(batch_of({DType::f32, output_}, batch.size()).shape);
  const size_t bytes = kept_->layout().input_bytes();
  std::vector<std::byte> target(kept_->layout().target_bytes());
  for (int64_t i = 0; i < batch.size(); ++i)
    kept_->read(batch.samples[static_cast<size_t>(i)],
                {result.raw() + static_cast<size_t>(i) * bytes, bytes}, target);
  return result;
}

Tensor Teacher::outputs(const data::Batch& batch, int lanes, comm::LaneRange own,
                        ThreadPool& pool) {
  if (kept_ && !batch.samples.empty()) return read_kept(batch);
  const auto rows_of = [&](int lane) { return Stepper::rows_of_lane(batch.total, lanes, lane); };
  Tensor result(batch_of({DType::f32, output_}, batch.x.shape()[0]).shape);
  const int64_t first = rows_of(own.first).first;
  for (int lane = own.first; lane < own.last; ++lane) {
    const auto [begin, end] = rows_of(lane);
    if (end > begin) program(end - begin);  // compiled here, not in the threads
  }
  pool.run(own.size(), [&](int64_t number) {
    const auto [begin, end] = rows_of(own.first + static_cast<int>(number));
    if (begin == end) return;
    std::unique_ptr<Place> place;
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        place = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!place) place = std::make_unique<Place>();
    compute(*place, batch.x.rows(begin - first, end - first),
            result.rows(begin - first, end - first));
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(place));
  });
  return result;
}

}  // namespace artel
