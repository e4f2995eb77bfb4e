#include "artel/predict/evaluator.h"

#include <algorithm>
#include <cstring>

#include "artel/exec/libraries.h"
#include "artel/graph/cost.h"
#include "artel/predict/batches.h"

namespace artel {
namespace {

// Small enough that threads share the work evenly, large enough for full-speed kernels.
constexpr int64_t kChunk = 64;

// Limit of a chunk's values in bytes: about the size of the weights, which are read again for each
// chunk. This balances both costs and keeps the values of a small network in the cache.
size_t most_chunk_bytes(const Graph& graph) {
  constexpr size_t kLeast = size_t{16} << 20, kMost = size_t{128} << 20;
  size_t weights = 0;
  for (const ValueId id : graph.of_kind(ValueKind::parameter)) weights += bytes_of(graph, id);
  return std::clamp(weights, kLeast, kMost);
}

void copy_rows(const Frame& frame, std::string_view output, int64_t begin, int64_t end,
               const Tensor& to) {
  const Tensor part = frame.output(output);
  std::memcpy(to.rows(begin, end).raw(), part.raw(), part.bytes());
}

}  // namespace

Evaluator::Evaluator(const Model& model, const TensorType& x, std::optional<TensorType> y,
                     const Loss& loss, Parameters& parameters, KernelChoices& choices, int threads,
                     std::vector<Metric> metrics, int shards,
                     std::map<std::string, QuantisedType> matrices)
    : model_(model),
      x_(x),
      y_(std::move(y)),
      loss_(loss),
      parameters_(parameters),
      choices_(choices),
      pool_(threads, limit_library_threads),
      wanted_(std::move(metrics)),
      part_(ShardPart::all(shards)),
      matrices_(std::move(matrices)) {}

const Program& Evaluator::program(int64_t samples) {
  std::unique_ptr<Program>& found = programs_[samples];
  if (!found) {
    const TensorType x = batch_of(x_, samples);
    ModelGraph model =
        y_ ? evaluation_graph(model_, x, batch_of(*y_, samples), loss_, wanted_, part_)
           : inference_graph(model_, x, part_);
    if (!matrices_.empty()) model.graph = quantise_weights(model.graph, matrices_);
    found = std::make_unique<Program>(std::move(model.graph), CompileOptions{}, choices_);
    fits_[samples] = found->plan().activation_bytes <= most_chunk_bytes(found->graph());
    if (parts_of_) parts_of_->restrict(*found);
  }
  return *found;
}

// Depends only on the network and the number of rows, like the results.
int64_t Evaluator::chunk_of(int64_t rows) {
  const auto fits = [&](int64_t samples) {
    program(samples);
    return fits_.at(samples);
  };
  const int64_t all = std::clamp<int64_t>(rows, 1, kChunk);
  if (fits(all)) return all;
  int64_t chunk = kChunk;
  while (chunk > 1 && (chunk >= all || !fits(chunk))) chunk /= 2;
  return chunk;
}

const Metrics& Evaluator::metrics() {
  if (!metrics_)
    metrics_.emplace(
        wanted_,
        evaluation_graph(model_, batch_of(x_, 1), batch_of(y_.value(), 1), loss_, wanted_).graph);
  return *metrics_;
}

void Evaluator::run(const Tensor& x, const Tensor* y,
                    const std::function<void(int64_t, int64_t, int64_t, const Frame&)>& done) {
  const int64_t rows = x.shape()[0], size = chunk_of(rows);
  const int64_t chunks = (rows + size - 1) / size;
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    program(std::min(size, rows - chunk * size));  // compiles before the threads start
  const auto run_chunk = [&](int64_t chunk) {
    const int64_t begin = chunk * size, end = std::min(rows, begin + size);
    std::unique_ptr<Memory> memory;
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        memory = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!memory) memory.reset(new Memory{ThreadPool(1, limit_library_threads), {}});
    const Program& compiled = *programs_.at(end - begin);
    std::unique_ptr<Frame>& frame = memory->frames[end - begin];
    if (!frame) frame = std::make_unique<Frame>(compiled, parameters_);
    frame->set_input("x", x.rows(begin, end));
    if (y) frame->set_input("y", y->rows(begin, end));
    if (parts_of_)
      parts_of_->run(compiled, *frame, memory->serial);
    else
      compiled.run(*frame, memory->serial, {});
    done(chunk, begin, end, *frame);
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(memory));
  };
  if (!parts_of_) return pool_.run(chunks, run_chunk);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) run_chunk(chunk);
}

Evaluator::Sums Evaluator::evaluate(const Tensor& x, const Tensor& y, Tensor* answers) {
  const Metrics& all = metrics();
  const int64_t size = chunk_of(x.shape()[0]);
  if (answers) *answers = output_for(x.shape()[0], "prediction");
  std::vector<Sums> parts(static_cast<size_t>((x.shape()[0] + size - 1) / size));
  run(x, &y, [&](int64_t chunk, int64_t begin, int64_t end, const Frame& frame) {
    const auto samples = static_cast<double>(end - begin);
    const bool weighted = frame.program().graph().has_output("loss_weight");
    const double weight = weighted ? frame.scalar("loss_weight") : 1;
    parts[chunk] = {frame.scalar("loss") * samples, weight * samples, end - begin};
    for (const Metrics::Part& part : all.parts()) {
      const Tensor sums = frame.output(part.output);
      parts[chunk].rows.emplace_back();
      if (part.width > 0) {
        parts[chunk].rows.back() = {sums.values<float>().begin(), sums.values<float>().end()};
        parts[chunk].metrics.resize(part.offset + part.size);  // computed from all rows at the end
        continue;
      }
      require(static_cast<size_t>(sums.elements()) == part.size, ErrorKind::shape,
              "[metric '{}'] got {} sums for {} samples and {} for one sample, expected the same "
              "number",
              part.metric.name, sums.elements(), end - begin, part.size);
      parts[chunk].metrics.insert(parts[chunk].metrics.end(), sums.values<float>().begin(),
                                  sums.values<float>().end());
    }
    if (answers) copy_rows(frame, "prediction", begin, end, *answers);
  });
  Sums total = {.metrics = std::vector<double>(all.sums())};
  total.rows.resize(all.parts().size());
  for (const Sums& part : parts) {
    total.loss += part.loss;
    total.weight += part.weight;
    total.samples += part.samples;
    for (size_t i = 0; i < part.metrics.size(); ++i) total.metrics[i] += part.metrics[i];
    for (size_t i = 0; i < part.rows.size(); ++i)
      total.rows[i].insert(total.rows[i].end(), part.rows[i].begin(), part.rows[i].end());
  }
  return total;
}

Tensor Evaluator::output_for(int64_t rows, std::string_view output) {
  const int64_t size = chunk_of(rows);
  const Graph& graph = program(size).graph();
  TensorType type = graph.type(graph.output_id(output));
  require(type.shape.rank() > 0 && type.shape[0] == size, ErrorKind::shape,
          "output '{}': got the shape {} for {} samples, expected a row for each", output,
          to_string(type.shape), size);
  type.shape[0] = rows;
  return Tensor(type.shape, type.dtype);
}

Tensor Evaluator::predict(const Tensor& x, std::string_view output) {
  return predict(x, std::vector{std::string(output)}).front();
}

std::vector<Tensor> Evaluator::predict(const Tensor& x, const std::vector<std::string>& outputs) {
  std::vector<Tensor> results;
  for (const std::string& output : outputs) results.push_back(output_for(x.shape()[0], output));
  run(x, nullptr, [&](int64_t, int64_t begin, int64_t end, const Frame& frame) {
    for (size_t i = 0; i < outputs.size(); ++i)
      copy_rows(frame, outputs[i], begin, end, results[i]);
  });
  return results;
}

}  // namespace artel
