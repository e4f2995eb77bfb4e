#include "artel/train/parts/forward_pipeline.h"

#include <algorithm>
#include <cstring>

#include "artel/base/error.h"
#include "artel/exec/plan/excerpt.h"
#include "artel/plan/cuts.h"

namespace artel {
namespace {

// Seconds after which a message from another worker is given up.
constexpr double kForwardPatience = 300;
constexpr uint32_t kValuesTag = 0;

// Cuts by the memory of kernels: parameters that they are the first to read, and results.
std::vector<int> stages_of_kernels(const Program& program, int stages) {
  const Plan& plan = program.plan();
  const auto count = static_cast<int>(plan.kernels.size());
  require(count >= stages, ErrorKind::invalid_argument,
          "cluster.pipeline: got {} workers for a network of {} kernels, expected at most one for "
          "each; try -n {}",
          stages, count, count);
  std::vector<double> weights;
  std::set<int> counted;
  for (const PlannedKernel& kernel : plan.kernels) {
    double bytes = 1;
    for (const int input : kernel.inputs)
      if (const int buffer = viewed(plan, input);
          plan.buffers[buffer].region == Region::parameters && counted.insert(buffer).second)
        bytes += static_cast<double>(plan.buffers[buffer].bytes);
    for (const int output : kernel.outputs)
      bytes += static_cast<double>(plan.buffers[output].bytes);
    weights.push_back(bytes);
  }
  const plan::StageBegins begins = plan::equal_cuts(weights, stages);
  std::vector<int> stage;
  for (int kernel = 0; kernel < count; ++kernel)
    stage.push_back(
        static_cast<int>(std::upper_bound(begins.begin(), begins.end(), kernel) - begins.begin()) -
        1);
  return stage;
}

}  // namespace

// Each kernel reads only values of earlier ones, so values only go to later stages.
void ForwardPipeline::restrict(Program& program) {
  const Plan& plan = program.plan();
  const std::vector<int> stage = stages_of_kernels(program, group_.size()), writer = writers(plan);
  const int rank = group_.rank();
  std::map<std::pair<int, int>, std::set<int>> sent;  // by sender and receiver
  for (size_t i = 0; i < plan.kernels.size(); ++i)
    for (const int input : plan.kernels[i].inputs) {
      const int buffer = viewed(plan, input), from = writer[buffer];
      if (from >= 0 && stage[from] != stage[i]) sent[{stage[from], stage[i]}].insert(buffer);
    }
  Part part;
  ExcerptPiece own, after;
  std::set<int> arriving;
  for (size_t i = 0; i < plan.kernels.size(); ++i)
    if (stage[i] == rank) own.kernels.push_back(static_cast<int>(i));
  for (const auto& [ends, buffers] : sent) {
    const std::vector<int> list(buffers.begin(), buffers.end());
    if (ends.second == rank) {
      part.from[ends.first] = list;
      own.arrivals.insert(own.arrivals.end(), list.begin(), list.end());
      arriving.insert(list.begin(), list.end());
    }
    if (ends.first == rank) {
      part.to[ends.second] = list;
      own.departures.insert(own.departures.end(), list.begin(), list.end());
    }
  }
  std::set<int> outputs;
  for (const auto& [name, value] : program.graph().outputs()) {
    const int buffer = viewed(plan, plan.buffer_of[value]);
    if (writer[buffer] < 0 || !outputs.insert(buffer).second) continue;
    const int from = stage[writer[buffer]];
    part.outputs.emplace_back(buffer, from);
    if (from != rank && !arriving.contains(buffer)) after.arrivals.push_back(buffer);
  }
  program.restrict_to({own, after});
  fill_parameters(program);
  parts_[&program] = std::move(part);
}

void ForwardPipeline::fill_parameters(const Program& program) {
  const Plan& plan = program.plan();
  for (const PlannedKernel& kernel : plan.kernels)
    for (const int input : kernel.inputs) {
      const Buffer& buffer = plan.buffers[viewed(plan, input)];
      if (buffer.region != Region::parameters) continue;
      const std::string& name = program.graph().value(buffer.value).whole_name();
      if (filled_.insert(name).second) fill_(name);
    }
}

void ForwardPipeline::run(const Program& program, Frame& frame, ThreadPool& pool) {
  const Part& part = parts_.at(&program);
  std::vector<std::byte> message;
  const auto bytes_of = [&](const std::vector<int>& buffers) {
    size_t bytes = 0;
    for (const int id : buffers) bytes += frame.buffer(id).size();
    return bytes;
  };
  for (const auto& [worker, buffers] : part.from) {
    message.resize(bytes_of(buffers));
    group_.receive(worker, kValuesTag, message).wait(Deadline::after(kForwardPatience));
    const std::byte* from = message.data();
    for (const int id : buffers) {
      const std::span<std::byte> buffer = frame.buffer(id);
      std::memcpy(buffer.data(), from, buffer.size());
      from += buffer.size();
    }
  }
  program.run(frame, pool, {});
  for (const auto& [worker, buffers] : part.to) {
    message.clear();
    for (const int id : buffers) {
      const std::span<std::byte> buffer = frame.buffer(id);
      message.insert(message.end(), buffer.begin(), buffer.end());
    }
    group_.send(worker, kValuesTag, message).wait(Deadline::after(kForwardPatience));
  }
  for (const auto& [id, worker] : part.outputs)
    group_.broadcast(frame.buffer(id), worker, {.label = "outputs"});
}

}  // namespace artel
