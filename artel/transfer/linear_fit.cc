#include "artel/transfer/linear_fit.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/thread_pool.h"
#include "artel/exec/libraries.h"
#include "artel/exec/program.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/lower.h"
#include "artel/nn/loss.h"

namespace artel::transfer {
namespace {

constexpr int64_t kChunk = 2048;  // rows per batch on one thread

// Sums over the rows of a chunk: the loss, and its gradient with respect to weights and bias.
Graph gradient_graph(int64_t rows, int64_t numbers, int64_t outputs, bool classes) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {rows, numbers}});
  const Value weight = graph.input("weight", {DType::f32, {outputs, numbers}});
  const Value bias = graph.input("bias", {DType::f32, {outputs}});
  const Value y =
      graph.input("y", {classes ? DType::i32 : DType::f32, classes ? Shape{rows} : Shape{rows, 1}});
  const Value scores = dense(x, weight, bias);
  Value wrong;
  if (classes) {
    const Value label = one_hot(y, outputs);
    wrong = sub(softmax(scores), label);
    graph.set_output("loss", unary("neg", sum(mul(log_softmax(scores), label))));
  } else {
    wrong = sub(scores, y);
    graph.set_output("loss", mul_scalar(sum(unary("square", wrong)), 0.5));
  }
  graph.set_output("weight gradient", matmul(wrong, x, {.transpose_a = true}));
  graph.set_output("bias gradient", sum(wrong, {0}));
  return lower(graph);
}

Graph output_graph(int64_t rows, int64_t numbers, int64_t outputs) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {rows, numbers}});
  const Value weight = graph.input("weight", {DType::f32, {outputs, numbers}});
  const Value bias = graph.input("bias", {DType::f32, {outputs}});
  graph.set_output("scores", dense(x, weight, bias));
  return lower(graph);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// The L-BFGS history, which approximates the curvature.
class Memory {
 public:
  void add(std::vector<double> step, std::vector<double> change) {
    const double product = dot(step, change);
    if (product <= 1e-10 * dot(change, change)) return;
    pairs_.push_back({std::move(step), std::move(change), 1 / product});
    if (pairs_.size() > 10) pairs_.pop_front();
  }
  // The descent direction: minus the approximate inverse Hessian times the gradient.
  std::vector<double> direction(const std::vector<double>& gradient) const {
    std::vector<double> q = gradient;
    std::vector<double> alpha(pairs_.size());
    for (size_t i = pairs_.size(); i-- > 0;) {
      alpha[i] = pairs_[i].rho * dot(pairs_[i].step, q);
      for (size_t j = 0; j < q.size(); ++j) q[j] -= alpha[i] * pairs_[i].change[j];
    }
    double scale = 1;
    if (!pairs_.empty()) {
      const Pair& last = pairs_.back();
      scale = 1 / (last.rho * dot(last.change, last.change));
    }
    for (double& value : q) value *= scale;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const double beta = pairs_[i].rho * dot(pairs_[i].change, q);
      for (size_t j = 0; j < q.size(); ++j) q[j] += (alpha[i] - beta) * pairs_[i].step[j];
    }
    for (double& value : q) value = -value;
    return q;
  }

 private:
  struct Pair {
    std::vector<double> step, change;
    double rho;
  };
  std::deque<Pair> pairs_;
};

}  // namespace

struct LinearFitter::Programs {
  std::map<int64_t, std::unique_ptr<Program>> by_rows;
  KernelChoices choices;
  Parameters none;
  mutable ThreadPool pool;
  struct Place {
    ThreadPool serial{1, limit_library_threads};
    std::map<int64_t, std::unique_ptr<Frame>> frames;
  };
  mutable std::vector<Place> places;  // by chunk of a wave

  explicit Programs(int threads)
      : pool(threads, limit_library_threads), places(static_cast<size_t>(threads)) {}
};

LinearFitter::LinearFitter(Tensor rows, Tensor targets, int64_t outputs, int threads)
    : rows_(std::move(rows)),
      targets_(std::move(targets)),
      outputs_(outputs),
      threads_(threads),
      programs_(std::make_unique<Programs>(threads)) {
  const int64_t count = rows_.shape()[0], numbers = rows_.shape()[1];
  const bool classes = targets_.dtype() == DType::i32;
  if (!classes) targets_ = targets_.reshaped({count, 1});
  for (const int64_t size : {std::min(count, kChunk), count % kChunk})
    if (size > 0 && !programs_->by_rows[size])
      programs_->by_rows[size] = std::make_unique<Program>(
          gradient_graph(size, numbers, outputs, classes), CompileOptions{}, programs_->choices);
}

LinearFitter::~LinearFitter() = default;

LinearFit LinearFitter::fit(double l2, const LinearFit* start, int most_iterations,
                            double least_gain) const {
  const int64_t count = rows_.shape()[0], numbers = rows_.shape()[1];
  const int64_t chunks = (count + kChunk - 1) / kChunk;
  const auto elements = static_cast<size_t>(outputs_ * numbers);
  const size_t size = elements + static_cast<size_t>(outputs_);
  LinearFit result = {.weights = Tensor({outputs_, numbers}), .bias = Tensor({outputs_})};
  std::vector<double> at(size, 0.0);
  if (start) {
    std::ranges::copy(start->weights.values<float>(), at.begin());
    std::ranges::copy(start->bias.values<float>(), at.begin() + static_cast<int64_t>(elements));
  }
  const auto unpack = [&](const std::vector<double>& from) {
    std::copy_n(from.begin(), elements, result.weights.values<float>().begin());
    std::copy(from.begin() + static_cast<int64_t>(elements), from.end(),
              result.bias.values<float>().begin());
  };
  const auto evaluate = [&](const std::vector<double>& where, std::vector<double>& gradient) {
    unpack(where);
    double loss = 0;
    gradient.assign(size, 0.0);
    struct Sums {
      double loss;
      Tensor weight, bias;
    };
    for (int64_t first = 0; first < chunks; first += threads_) {
      const int64_t wave = std::min<int64_t>(threads_, chunks - first);
      std::vector<Sums> sums(static_cast<size_t>(wave));
      programs_->pool.run(wave, [&](int64_t i) {
        const int64_t begin = (first + i) * kChunk, end = std::min(count, begin + kChunk);
        const Program& program = *programs_->by_rows.at(end - begin);
        auto& place = programs_->places[static_cast<size_t>(i)];
        std::unique_ptr<Frame>& frame = place.frames[end - begin];
        if (!frame) frame = std::make_unique<Frame>(program, programs_->none);
        frame->set_input("x", rows_.rows(begin, end));
        frame->set_input("y", targets_.rows(begin, end));
        frame->set_input("weight", result.weights);
        frame->set_input("bias", result.bias);
        program.run(*frame, place.serial, {});
        sums[static_cast<size_t>(i)] = {frame->scalar("loss"), frame->output("weight gradient"),
                                        frame->output("bias gradient")};
      });
      for (const Sums& each : sums) {
        loss += each.loss;
        for (size_t j = 0; j < elements; ++j) gradient[j] += each.weight.values<float>()[j];
        for (size_t j = elements; j < size; ++j)
          gradient[j] += each.bias.values<float>()[j - elements];
      }
    }
    const double share = 1.0 / static_cast<double>(count);
    loss *= share;
    for (double& value : gradient) value *= share;
    for (size_t j = 0; j < elements; ++j) {
      loss += l2 / 2 * where[j] * where[j];
      gradient[j] += l2 * where[j];
    }
    return loss;
  };

  std::vector<double> gradient, next_gradient;
  double loss = evaluate(at, gradient);
  Memory memory;
  for (result.iterations = 0; result.iterations < most_iterations; ++result.iterations) {
    double largest = 0;
    for (const double value : gradient) largest = std::max(largest, std::abs(value));
    if (largest < 1e-5) break;
    std::vector<double> direction = memory.direction(gradient);
    double slope = dot(direction, gradient);
    if (slope >= 0) {
      for (size_t j = 0; j < size; ++j) direction[j] = -gradient[j];
      slope = dot(direction, gradient);
    }
    double length = result.iterations == 0 ? std::min(1.0, 1 / std::sqrt(-slope)) : 1.0;
    std::vector<double> next(size);
    double next_loss = 0;
    bool better = false;
    for (int tries = 0; tries < 20 && !better; ++tries, length /= 2) {
      for (size_t j = 0; j < size; ++j) next[j] = at[j] + length * direction[j];
      next_loss = evaluate(next, next_gradient);
      better = std::isfinite(next_loss) && next_loss <= loss + 1e-4 * length * slope;
    }
    if (!better) break;  // converged to rounding errors
    std::vector<double> step(size), change(size);
    for (size_t j = 0; j < size; ++j) {
      step[j] = next[j] - at[j];
      change[j] = next_gradient[j] - gradient[j];
    }
    memory.add(std::move(step), std::move(change));
    const double gain = loss - next_loss;
    at.swap(next);
    gradient.swap(next_gradient);
    loss = next_loss;
    // The first step has no curvature information and may be short.
    if (result.iterations > 0 && gain < least_gain * std::abs(loss)) break;
  }
  unpack(at);
  result.loss = loss;
  require(std::isfinite(loss), ErrorKind::numeric,
          "linear: the loss is {}; the features may hold NaN or infinity", loss);
  return result;
}

Tensor LinearFitter::outputs(const LinearFit& fit, const Tensor& rows, int threads) {
  const int64_t count = rows.shape()[0], numbers = rows.shape()[1];
  const int64_t outputs = fit.weights.shape()[0];
  Tensor all({count, outputs});
  if (count == 0) return all;
  KernelChoices choices;
  std::map<int64_t, std::unique_ptr<Program>> programs;
  for (const int64_t size : {std::min(count, kChunk), count % kChunk})
    if (size > 0 && !programs[size])
      programs[size] = std::make_unique<Program>(output_graph(size, numbers, outputs),
                                                 CompileOptions{}, choices);
  ThreadPool pool(threads, limit_library_threads);
  pool.run((count + kChunk - 1) / kChunk, [&](int64_t chunk) {
    const int64_t begin = chunk * kChunk, end = std::min(count, begin + kChunk);
    const Program& program = *programs.at(end - begin);
    Parameters none;
    Frame frame(program, none);
    frame.set_input("x", rows.rows(begin, end));
    frame.set_input("weight", fit.weights);
    frame.set_input("bias", fit.bias);
    ThreadPool serial(1, limit_library_threads);
    program.run(frame, serial, {});
    const Tensor scores = frame.output("scores");
    std::ranges::copy(scores.values<float>(), all.rows(begin, end).values<float>().begin());
  });
  return all;
}

}  // namespace artel::transfer
