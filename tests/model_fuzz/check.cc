#include "tests/model_fuzz/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "artel/base/error.h"
#include "artel/data/dataset.h"
#include "artel/predict/batches.h"
#include "tests/model_fuzz/compare.h"
#include "tests/model_fuzz/training.h"
#include "tests/reference/optimizers.h"
#include "tests/unit/train/workers.h"

namespace artel::model_fuzz {
namespace {

using reference::Array;

// What one step should give, from the plain graph of the model: neither fused nor differentiated.
class Expectation {
 public:
  explicit Expectation(const NetworkCase& network) : network_(network) {}

  struct Step {
    double loss = 0;
    Arrays gradients, states;
  };

  Step step(int64_t number, const Arrays& leaves, const reference::Noise& noise = {}) {
    Step result;
    const Tensor x = network_.inputs(number), y = network_.targets(number);
    reference::Leaves all = leaves;
    int64_t working = 0;
    for (int lane = 0; lane < network_.lanes; ++lane) {
      const auto [begin, end] =
          Stepper::rows_of_lane(network_.batch, static_cast<int>(network_.lanes), lane);
      if (begin == end) continue;
      ++working;
      Lane& compiled = lane_of(end - begin);
      all["x"] = reference::from_tensor(x.rows(begin, end));
      all["y"] = reference::from_tensor(y.rows(begin, end));
      const reference::RandomKey key = {network_.seed, number, lane};
      const std::vector<Array> values = reference::run(compiled.graph, all, key, noise);
      const ValueId loss = compiled.graph.output_id("loss");
      const double weight = static_cast<double>(end - begin) / static_cast<double>(network_.batch);
      result.loss += weight * values[loss].data[0];
      const std::vector<ValueId> parameters = compiled.graph.of_kind(ValueKind::parameter);
      const std::vector<Array> gradients =
          reference::gradients(compiled.graph, values, loss, parameters, key, noise);
      for (size_t i = 0; i < parameters.size(); ++i)
        accumulate(result.gradients[compiled.graph.value(parameters[i]).name], gradients[i],
                   weight);
      for (const StateUpdate& update : compiled.graph.state_updates()) {
        const std::string& name = compiled.graph.value(update.state).name;
        momentum_[name] = update.momentum;
        accumulate(result.states[name], values[update.observed], 1);
      }
    }
    for (auto& [name, observed] : result.states)
      for (size_t i = 0; i < observed.data.size(); ++i)
        observed.data[i] = (1 - momentum_[name]) * all[name].data[i] +
                           momentum_[name] * observed.data[i] / static_cast<double>(working);
    return result;
  }

 private:
  struct Lane {
    Graph graph;
  };

  Lane& lane_of(int64_t samples) {
    Lane& lane = lanes_[samples];
    if (lane.graph.nodes().empty()) {
      nn::Build build(lane.graph, true);
      const Value x = lane.graph.input("x", batch_of(network_.x(), samples));
      const Value prediction = network_.model().network()(build, x);
      const Value y = lane.graph.input("y", batch_of(network_.y(), samples));
      const Graph::Scope scope(lane.graph, "loss");
      lane.graph.set_output("loss",
                            loss_by_name(network_.loss, network_.label_smoothing)(prediction, y));
    }
    return lane;
  }

  static void accumulate(Array& sum, const Array& term, double weight) {
    if (sum.data.empty()) sum = {term.shape, std::vector<double>(term.data.size(), 0)};
    for (size_t i = 0; i < term.data.size(); ++i) sum.data[i] += weight * term.data[i];
  }

  const NetworkCase& network_;
  std::map<int64_t, Lane> lanes_;
  std::map<std::string, double> momentum_;
};

class Comparison {
 public:
  Comparison(const NetworkCase& network, Training& training)
      : network_(network),
        training_(training),
        expectation_(network),
        optimizer_(optim::optimizer_from_options(network.optimizer)) {}

  std::optional<std::string> run() {
    for (int64_t step = 1; step <= network_.steps; ++step) {
      const Arrays before = training_.parameters();
      const Expectation::Step expected = expectation_.step(step, before);
      Training::Step found;
      try {
        found = training_.step();
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::numeric && !std::isfinite(static_cast<float>(expected.loss)))
          return std::nullopt;
        if (error.kind() != ErrorKind::internal && error.kind() != ErrorKind::numeric)
          throw;  // the network cannot be trained so
        return fmt::format("step {}: {}", step, error.what());
      }
      if (!std::isfinite(expected.loss)) return std::nullopt;  // beyond what floats hold soon
      if (auto wrong = compare(step, before, expected, found)) return wrong;
      if (auto wrong = compare_update(step, before, found.gradients)) return wrong;
    }
    return std::nullopt;
  }

 private:
  struct Difference {
    std::string what;
    double found, allowed;
  };

  // Everything of a step that differs by more than rounding.
  std::vector<Difference> differences(const Expectation::Step& expected,
                                      const Training::Step& found, const Arrays& after) const {
    std::vector<Difference> result;
    const auto check = [&](std::string what, double difference, double allowed) {
      if (!(difference <= allowed)) result.push_back({std::move(what), difference, allowed});
    };
    check("loss", std::abs(found.loss - expected.loss),
          kRounding * std::max(std::abs(expected.loss), 1e-3));
    double scale = 0;
    for (const auto& [name, gradient] : expected.gradients)
      scale = std::max(scale, largest(gradient));
    for (const auto& [name, gradient] : expected.gradients) {
      const auto own = found.gradients.find(name);
      const Array none = {gradient.shape, std::vector<double>(gradient.data.size())};
      const Array& other = own == found.gradients.end() ? none : own->second;
      check("gradient of '" + name + "'", distance(gradient, other),
            kRounding * std::max(largest(gradient), 1e-2 * scale) + kCancelled);
    }
    for (const auto& [name, state] : expected.states)
      check("state '" + name + "'", distance(state, after.at(name)),
            kRounding * largest(state) + kCancelled);
    return result;
  }

  std::optional<std::string> compare(int64_t step, const Arrays& before,
                                     const Expectation::Step& expected,
                                     const Training::Step& found) {
    const Arrays after = training_.parameters();
    std::vector<Difference> wrong = differences(expected, found, after);
    if (wrong.empty()) return std::nullopt;
    std::map<std::string, double> sway;
    for (int i = 0; i < kNoisyRuns; ++i) {
      const Expectation::Step noisy =
          expectation_.step(step, before, {kNoise, network_.seed + static_cast<uint64_t>(i)});
      sway["loss"] = std::max(sway["loss"], std::abs(noisy.loss - expected.loss));
      for (const auto& [name, gradient] : noisy.gradients) {
        double& most = sway["gradient of '" + name + "'"];
        most = std::max(most, distance(gradient, expected.gradients.at(name)));
      }
      for (const auto& [name, state] : noisy.states) {
        double& most = sway["state '" + name + "'"];
        most = std::max(most, distance(state, expected.states.at(name)));
      }
    }
    for (const auto& [name, gradient] : expected.gradients)
      if (sway["gradient of '" + name + "'"] > kLost * largest(gradient) + kCancelled)
        return std::nullopt;
    for (const Difference& difference : wrong)
      if (!(difference.found <= difference.allowed + kSway * sway[difference.what]))
        return fmt::format(
            "step {}: {} differs from the reference by {:.3g}, allowed {:.3g} and {} times {:.3g} "
            "by "
            "which the reference sways",
            step, difference.what, difference.found, difference.allowed, kSway,
            sway[difference.what]);
    return std::nullopt;
  }

  // The weights after an update by the gradients that Artel itself found. With noise the optimizer
  // is a copy: only one update of a step counts.
  static Arrays updated(reference::Optimizer& optimizer, const NetworkCase& network, int64_t step,
                        const Arrays& before, Arrays gradients, reference::Noise noise = {}) {
    Random random{noise.seed};
    Arrays weights;
    for (auto& [name, gradient] : gradients) {
      weights[name] = before.at(name);
      for (Array* array : {&gradient, &weights[name]})
        for (double& value : array->data) value *= 1 + noise.size * random.normal();
    }
    optimizer.update(weights, gradients, step,
                     optim::optimizer_from_options(network.optimizer).learning_rate);
    return weights;
  }

  std::optional<std::string> compare_update(int64_t step, const Arrays& before,
                                            const Arrays& gradients) {
    const reference::Optimizer copy = optimizer_;
    const Arrays expected = updated(optimizer_, network_, step, before, gradients);
    const Arrays after = training_.parameters();
    for (const auto& [name, weights] : expected) {
      const Array &old = before.at(name), &found = after.at(name);
      const double moved = distance(weights, old), off = distance(weights, found);
      const double allowed = 1e-4 * moved + 5e-7 * std::max(largest(old), largest(found)) + 1e-12;
      // Squares of such gradients are infinite floats, and the rules that divide by them stand
      // still.
      const bool overflows = largest(gradients.at(name)) > 1e18;
      if (off <= allowed || overflows || !std::isfinite(moved)) continue;
      double sway = 0;  // as where a gradient and the decay cancel out
      for (uint64_t i = 0; i < kNoisyRuns; ++i) {
        reference::Optimizer noisy = copy;
        sway = std::max(sway, distance(weights, updated(noisy, network_, step, before, gradients,
                                                        {kNoise, network_.seed + i})
                                                    .at(name)));
      }
      if (!(off <= allowed + kSway * sway))
        return fmt::format("step {}: '{}' is {:.3g} off after its update, allowed {:.3g}", step,
                           name, off, allowed);
    }
    return std::nullopt;
  }

  const NetworkCase& network_;
  Training& training_;
  Expectation expectation_;
  reference::Optimizer optimizer_;
};

// The bits after all steps, or the message of the error that ended them.
struct Outcome {
  std::vector<float> bits;
  std::string error;
  bool operator==(const Outcome& other) const {
    return error == other.error && same_bits(bits, other.bits);
  }
};

Outcome outcome(const NetworkCase& network, const Setting& setting) {
  Training training(network, setting);
  try {
    for (int64_t step = 0; step < network.steps; ++step) training.step();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::memory || error.kind() == ErrorKind::internal) throw;
    return {{}, error.what()};
  }
  return {training.bits(), {}};
}

std::optional<std::string> compare_bits(const NetworkCase& network) {
  const Outcome expected = outcome(network, {});
  const auto differs = [&](const Setting& setting) {
    return !(outcome(network, setting) == expected);
  };
  if (differs({})) return "a second run has other bits";
  if (differs({.check_memory = true})) return "with marked memory the bits are others";
  if (network.threads > 1 && differs({.threads = static_cast<int>(network.threads)}))
    return fmt::format("{} threads give other bits than one", network.threads);
  if (network.limit_memory) {
    const size_t bytes = Training(network, {}).activation_bytes();
    for (const double share : {0.85, 0.65, 0.5}) {
      try {
        if (differs({.memory_limit = static_cast<size_t>(share * static_cast<double>(bytes)),
                     .check_memory = true}))
          return fmt::format("with {} of the memory the bits are others", share);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::memory) throw;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> compare_workers(const NetworkCase& network) {
  std::vector<Tensor> x, y;
  for (int64_t step = 1; step <= network.steps; ++step) {
    x.push_back(network.inputs(step));
    y.push_back(network.targets(step));
  }
  const auto joined = [&](const std::vector<Tensor>& parts) {
    Shape shape = parts[0].shape();
    shape[0] *= std::ssize(parts);
    Tensor all(shape, parts[0].dtype());
    std::byte* to = all.raw();
    for (const Tensor& part : parts) to = std::copy_n(part.raw(), part.bytes(), to);
    return all;
  };
  const auto trained = [&](Cluster& cluster) {
    Trainer trainer(cluster, network.model(),
                    {.optimizer = optim::optimizer_from_options(network.optimizer),
                     .loss = network.loss,
                     .label_smoothing = network.label_smoothing,
                     .seed = network.seed,
                     .threads = 1,
                     .lanes = static_cast<int>(network.lanes),
                     .exact_convolutions = network.exact_convolutions});
    trainer.fit(joined(x), joined(y), {.batch_size = network.batch, .epochs = 2});
    return flat(trainer.weights());
  };
  std::vector<float> expected;
  try {
    Cluster alone;
    expected = trained(alone);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return std::nullopt;  // an infinite loss ends all of them
  }
  std::vector<std::string> wrong(static_cast<size_t>(network.workers));
  on_workers(static_cast<int>(network.workers), [&](int rank, Cluster& cluster) {
    if (!same_bits(trained(cluster), expected))
      wrong[static_cast<size_t>(rank)] =
          fmt::format("worker {} of {} has other bits than one alone", rank, network.workers);
  });
  for (const std::string& text : wrong)
    if (!text.empty()) return text;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> what_is_wrong(const NetworkCase& network) {
  try {
    Training training(network, {.tune = network.tune, .check_memory = true});
    if (auto wrong = Comparison(network, training).run()) return wrong;
    if (network.tune) return std::nullopt;  // which kernels run is a matter of time
    if (auto wrong = compare_bits(network)) return wrong;
    if (network.workers > 1) return compare_workers(network);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) return error.what();
  } catch (const std::exception& error) {  // of a library
    return error.what();
  }
  return std::nullopt;
}

NetworkCase reduce(NetworkCase network) {
  for (bool again = true; again;) {
    again = false;
    for (const NetworkCase& next : simpler(network)) {
      bool wrong = false;
      try {
        wrong = what_is_wrong(next).has_value();
      } catch (const std::exception&) {
      }
      if (!wrong) continue;
      network = next;
      again = true;
      break;
    }
  }
  return network;
}

}  // namespace artel::model_fuzz
