#include "artel/predict/evaluator.h"

#include <cstring>

#include "artel/exec/libraries.h"
#include "artel/predict/batches.h"

namespace artel {
namespace {

// Small enough that threads share the work evenly, large enough for full-speed kernels.
constexpr int64_t kChunk = 64;

}  // namespace

Evaluator::Evaluator(const Model& model, const TensorType& x, std::optional<TensorType> y,
                     const Loss& loss, Parameters& parameters, KernelChoices& choices, int threads)
    : model_(model),
      x_(x),
      y_(std::move(y)),
      loss_(loss),
      parameters_(parameters),
      choices_(choices),
      pool_(threads, limit_library_threads) {}

const Program& Evaluator::program(int64_t samples) {
  std::unique_ptr<Program>& found = programs_[samples];
  if (!found) {
    const TensorType x = batch_of(x_, samples);
    ModelGraph model = y_ ? evaluation_graph(model_, x, batch_of(*y_, samples), loss_)
                          : inference_graph(model_, x);
    found = std::make_unique<Program>(std::move(model.graph), CompileOptions{}, choices_);
  }
  return *found;
}

void Evaluator::run(const Tensor& x, const Tensor* y,
                    const std::function<void(int64_t, int64_t, int64_t, const Lane&)>& done) {
  const int64_t rows = x.shape()[0];
  const int64_t chunks = (rows + kChunk - 1) / kChunk;
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    program(std::min(kChunk, rows - chunk * kChunk));  // compiled here, not in the threads
  pool_.run(chunks, [&](int64_t chunk) {
    const int64_t begin = chunk * kChunk, end = std::min(rows, begin + kChunk);
    std::unique_ptr<Memory> memory;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        memory = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!memory) memory.reset(new Memory{ThreadPool(1, limit_library_threads), {}});
    const Program& compiled = *programs_.at(end - begin);
    std::unique_ptr<Lane>& lane = memory->lanes[end - begin];
    if (!lane) lane = std::make_unique<Lane>(compiled, parameters_);
    lane->set_input("x", x.rows(begin, end));
    if (y) lane->set_input("y", y->rows(begin, end));
    compiled.run(*lane, memory->serial, {});
    done(chunk, begin, end, *lane);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(memory));
  });
}

Evaluator::Sums Evaluator::evaluate(const Tensor& x, const Tensor& y) {
  std::vector<Sums> parts(static_cast<size_t>((x.shape()[0] + kChunk - 1) / kChunk));
  run(x, &y, [&](int64_t chunk, int64_t begin, int64_t end, const Lane& lane) {
    parts[chunk] = {double{lane.scalar("loss")} * static_cast<double>(end - begin),
                    count_correct(lane.output("prediction"), y.rows(begin, end)), end - begin};
  });
  Sums total;
  for (const Sums& part : parts) {
    total.loss += part.loss;
    total.correct += part.correct;
    total.samples += part.samples;
  }
  return total;
}

Tensor Evaluator::predict(const Tensor& x) {
  const int64_t rows = x.shape()[0];
  const Graph& graph = program(std::min(rows, kChunk)).graph();
  Shape shape = graph.type(graph.output_id("prediction")).shape;
  shape[0] = rows;
  Tensor result(shape);
  run(x, nullptr, [&](int64_t, int64_t begin, int64_t end, const Lane& lane) {
    const Tensor part = lane.output("prediction");
    std::memcpy(result.rows(begin, end).raw(), part.raw(), part.bytes());
  });
  return result;
}

}  // namespace artel
