// Builds, compiles and runs small graphs in tests.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "artel/base/random.h"
#include "artel/exec/libraries.h"
#include "artel/exec/program.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/lower.h"

namespace artel::tests {

// A scalar function of parameters p0, p1, ...
using Function = std::function<Value(Graph&, const std::vector<Value>&)>;

struct Range {
  float low = -1, high = 1;
};

class Harness {
 public:
  Harness(std::vector<Shape> shapes, const Function& function, Range range = {}, uint64_t seed = 1,
          int threads = 1, Device& device = cpu())
      : pool_(threads, limit_library_threads) {
    Graph graph;
    std::vector<Value> parameters;
    for (size_t i = 0; i < shapes.size(); ++i)
      parameters.push_back(graph.parameter("p" + std::to_string(i), shapes[i]));
    graph.set_output("loss", function(graph, parameters));
    KernelChoices choices;
    program_ =
        std::make_unique<Program>(lower(graph, Differentiation{}),
                                  CompileOptions{.threads = threads, .device = &device}, choices);
    check_plan(program_->graph(), program_->plan());
    parameters_ = Parameters(program_->parameter_entries());
    frame_ = std::make_unique<Frame>(*program_, parameters_);
    for (size_t i = 0; i < shapes.size(); ++i) {
      Tensor value(shapes[i]);
      Random random{seed, i};
      for (float& x : value.values<float>()) x = random.uniform(range.low, range.high);
      set("p" + std::to_string(i), value);
    }
  }

  void set(const std::string& name, const Tensor& value) { parameters_.set(name, value); }
  Tensor get(const std::string& name) const { return parameters_.get(name); }

  float loss() {
    program_->run(*frame_, pool_, {});
    return frame_->scalar("loss");
  }

  // The gradient of a parameter after loss(), row-major; empty if there is none.
  Tensor gradient(const std::string& name) {
    for (const GradientSlot& slot : program_->plan().gradients) {
      if (program_->graph().value(slot.value).name != name) continue;
      const ParameterEntry& entry = parameters_.entry(name);
      Tensor result(entry.shape);
      convert_layout(pool_, entry.shape, DType::f32,
                     reinterpret_cast<const std::byte*>(frame_->gradients().data()) + slot.offset,
                     entry.layout, result.raw(), Layout::row_major());
      return result;
    }
    return Tensor();
  }

  const Program& program() const { return *program_; }
  Frame& frame() { return *frame_; }
  ThreadPool& pool() { return pool_; }

 private:
  ThreadPool pool_;
  std::unique_ptr<Program> program_;
  Parameters parameters_;
  std::unique_ptr<Frame> frame_;
};

// sum(y * r) with fixed random r: turns any op into a scalar that feels every element differently.
inline Value probe(Value y) {
  Tensor weights(y.shape());
  Random random{77};
  for (float& w : weights.values<float>()) w = random.uniform(-1, 1);
  return sum(mul(y, y.graph().constant("probe", std::move(weights))));
}

}  // namespace artel::tests
