// A training compared with the reference, step by step. Weights are copied from Artel at each step,
// so rounding errors do not accumulate.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "tests/model_fuzz/check.h"
#include "tests/model_fuzz/compare.h"
#include "tests/model_fuzz/expectation.h"
#include "tests/reference/optimizers.h"

namespace artel::model_fuzz {
namespace {

using reference::Array;

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
      const Results expected = expectation_.step(step, before);
      const double loss = expected.values.at("loss").data[0];
      Training::Step found;
      try {
        found = training_.step();
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::numeric && !std::isfinite(static_cast<float>(loss)))
          return std::nullopt;
        if (error.kind() != ErrorKind::internal && error.kind() != ErrorKind::numeric)
          throw;  // the network cannot be trained this way
        return fmt::format("step {}: {}", step, error.what());
      }
      if (!std::isfinite(loss)) return std::nullopt;  // soon out of the range of floats
      const auto where = fmt::format("step {}", step);
      if (auto wrong = compare(where, expected, results_of(found), [&](reference::Noise noise) {
            return expectation_.step(step, before, noise);
          }))
        return wrong;
      if (auto wrong = compare_update(step, before, found.gradients)) return wrong;
      if (auto wrong = compare_untouched(step, before, found.gradients, expected)) return wrong;
    }
    return compare_evaluation();
  }

 private:
  Arrays results_of(const Training::Step& found) const {
    Arrays results = found.metrics;
    results["loss"] = {{}, {found.loss}};
    for (const auto& [name, gradient] : found.gradients) results[gradient_of(name)] = gradient;
    for (const auto& [name, value] : training_.parameters()) results[state_of(name)] = value;
    return results;
  }

  // The largest error by rounding of a value of this size.
  static double allowed(const std::string& what, double size, const Results& expected) {
    if (what == "loss") return kRounding * std::max(size, 1e-3);
    if (what.starts_with("gradient")) size = std::max(size, 1e-2 * expected.gradient_scale);
    return kRounding * size + kCancelled;
  }

  // `again` gives the expected results with rounding errors.
  template <typename Again>
  std::optional<std::string> compare(const std::string& where, const Results& expected,
                                     const Arrays& found, const Again& again) const {
    std::vector<Results> noisy;
    const auto sway = [&](const std::string& what) {
      while (noisy.size() < kNoisyRuns)
        noisy.push_back(again(reference::Noise{kNoise, network_.seed + noisy.size()}));
      double most = 0;
      for (const Results& each : noisy)
        most = std::max(most, distance(each.values.at(what), expected.values.at(what)));
      return most;
    };
    for (const auto& [what, value] : expected.values) {
      const double size = largest(value), most = allowed(what, size, expected);
      if (!is_finite(value)) continue;
      const auto own = found.find(what);
      const double off = own == found.end() ? size : distance(value, own->second);
      if (off <= most || off <= most + kSway * sway(what)) continue;
      if (what.starts_with("gradient") && sway(what) > kLost * size + kCancelled) continue;
      if (counts_answers(what) && !is_clear(expected, noisy)) continue;
      return fmt::format(
          "{}: {} differs from the reference by {:.3g}, allowed {:.3g} and {} times {:.3g} by "
          "which "
          "the reference sways",
          where, what, off, most, kSway, sway(what));
    }
    return std::nullopt;
  }

  // True if rounding cannot change the order of scores.
  static bool is_clear(const Results& expected, const std::vector<Results>& noisy) {
    double sway = 1e-4;
    for (const Results& each : noisy)
      sway = std::max(sway, kSway * std::abs(each.margin - expected.margin));
    return expected.margin > sway;
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
      // Squares of such gradients overflow to infinity or vanish, and rules that divide by them, or
      // by the norm of what they move, do something else.
      const double size = largest(gradients.at(name));
      const bool out_of_range = size > 1e18 || size < 1e-12;
      if (off <= allowed || out_of_range || !std::isfinite(moved)) continue;
      double sway = 0;  // for example where a gradient and the decay cancel out
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

  // Parameters that are frozen, or without effect on the loss, stay unchanged.
  std::optional<std::string> compare_untouched(int64_t step, const Arrays& before,
                                               const Arrays& gradients,
                                               const Results& expected) const {
    for (const auto& [name, value] : training_.parameters()) {
      const bool has_gradient = gradients.contains(name);
      if (has_gradient && !network_.trained(name))
        return fmt::format("step {}: '{}' is frozen, but has a gradient", step, name);
      if (has_gradient || expected.values.contains(state_of(name))) continue;
      if (value.data != before.at(name).data)
        return fmt::format("step {}: '{}' is not trained, but has changed", step, name);
    }
    return std::nullopt;
  }

  std::optional<std::string> compare_evaluation() {
    const Arrays leaves = training_.parameters();
    const Results expected = expectation_.evaluation(leaves);
    for (const auto& [what, value] : expected.values)
      if (!is_finite(value) || largest(value) > 1e15)
        return std::nullopt;  // squares on the way are out of the range of floats
    for (const auto& [name, value] : leaves)
      if (largest(value) > 1e6) return std::nullopt;
    return compare("evaluation", expected, training_.evaluate(),
                   [&](reference::Noise noise) { return expectation_.evaluation(leaves, noise); });
  }

  const NetworkCase& network_;
  Training& training_;
  Expectation expectation_;
  reference::Optimizer optimizer_;
};

}  // namespace

std::optional<std::string> compare_with_reference(const NetworkCase& network, Device& device) {
  const bool here = &device == &cpu();
  Training training(network,
                    {.tune = network.tune && here, .check_memory = here, .device = &device});
  return Comparison(network, training).run();
}

}  // namespace artel::model_fuzz
