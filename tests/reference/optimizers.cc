#include "tests/reference/optimizers.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"

namespace artel::reference {
namespace {

using Vector = std::vector<double>;

double norm(const Vector& values) {
  double squares = 0;
  for (const double v : values) squares += v * v;
  return std::sqrt(squares);
}

// One parameter in one step. A rule is applied to it by an overload of `operator()`.
struct Step {
  Vector& p;
  Vector g;
  Optimizer::State& state;
  bool decays;  // whether decay and scaling by norms are for this parameter
  int64_t t;
  double rate;

  void add_decay(double decay) {
    if (!decays) return;
    for (size_t i = 0; i < p.size(); ++i) g[i] += decay * p[i];
  }

  // The first gradient enters the momentum undamped, as in PyTorch.
  void operator()(const optim::Sgd& rule) {
    add_decay(rule.weight_decay);
    Vector& m = state[0];
    for (size_t i = 0; i < p.size(); ++i) {
      m[i] = rule.momentum * m[i] + (t == 1 ? 1 : 1 - rule.dampening) * g[i];
      const double direction = rule.momentum == 0 ? g[i]
                               : rule.nesterov    ? g[i] + rule.momentum * m[i]
                                                  : m[i];
      p[i] -= rate * direction;
    }
  }

  void operator()(const optim::Adagrad& rule) {
    add_decay(rule.weight_decay);
    Vector& sum = state[0];
    for (size_t i = 0; i < p.size(); ++i) {
      sum[i] += g[i] * g[i];
      p[i] -= rate * g[i] / (std::sqrt(sum[i]) + rule.epsilon);
    }
  }

  void operator()(const optim::RmsProp& rule) {
    add_decay(rule.weight_decay);
    auto& [square, mean, buffer] = state;
    for (size_t i = 0; i < p.size(); ++i) {
      square[i] = rule.smoothing * square[i] + (1 - rule.smoothing) * g[i] * g[i];
      mean[i] = rule.smoothing * mean[i] + (1 - rule.smoothing) * g[i];
      const double variance = rule.centered ? square[i] - mean[i] * mean[i] : square[i];
      const double direction = g[i] / (std::sqrt(std::max(variance, 0.0)) + rule.epsilon);
      buffer[i] = rule.momentum * buffer[i] + direction;
      p[i] -= rate * buffer[i];
    }
  }

  // m / (sqrt(v) + epsilon), both corrected for their zero start.
  Vector adam_direction(const auto& rule) {
    auto& [m, v, unused] = state;
    Vector direction;
    for (size_t i = 0; i < p.size(); ++i) {
      m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * g[i];
      v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * g[i] * g[i];
      const double mean = m[i] / (1 - std::pow(rule.beta1, static_cast<double>(t)));
      const double square = v[i] / (1 - std::pow(rule.beta2, static_cast<double>(t)));
      direction.push_back(mean / (std::sqrt(square) + rule.epsilon));
    }
    return direction;
  }

  void follow(const Vector& direction, double by) {
    for (size_t i = 0; i < p.size(); ++i) p[i] -= by * direction[i];
  }

  void operator()(const optim::Adam& rule) {
    add_decay(rule.weight_decay);
    follow(adam_direction(rule), rate);
  }

  void operator()(const optim::AdamW& rule) {
    if (decays)
      for (double& value : p) value *= 1 - rate * rule.weight_decay;
    follow(adam_direction(rule), rate);
  }

  // You, Gitman, Ginsburg 2017, algorithm 1. A parameter that is all zero could never leave zero:
  // it is not scaled.
  void operator()(const optim::Lars& rule) {
    double trust = 1;
    if (decays && norm(p) > 0)
      trust = rule.trust * norm(p) / (norm(g) + rule.weight_decay * norm(p) + rule.epsilon);
    add_decay(rule.weight_decay);
    Vector& m = state[0];
    for (size_t i = 0; i < p.size(); ++i) {
      m[i] = rule.momentum * m[i] + rate * trust * g[i];
      p[i] -= m[i];
    }
  }

  // You et al. 2020, algorithm 2, with the norm itself as scaling function.
  // A user's rule has no reference.
  void operator()(const optim::Custom& rule) {
    fail(ErrorKind::unsupported, "[reference] update rule '{}' is not known", rule.name);
  }

  void operator()(const optim::Lamb& rule) {
    Vector direction = adam_direction(rule);
    if (decays)
      for (size_t i = 0; i < p.size(); ++i) direction[i] += rule.weight_decay * p[i];
    const bool scaled = decays && norm(p) > 0 && norm(direction) > 0;
    follow(direction, scaled ? rate * norm(p) / norm(direction) : rate);
  }
};

}  // namespace

void Optimizer::update(std::map<std::string, Array>& parameters,
                       const std::map<std::string, Array>& gradients, int64_t step,
                       double learning_rate) {
  double scale = 1;
  if (config_.clip_norm > 0) {
    double squares = 0;
    for (const auto& [name, gradient] : gradients) squares += std::pow(norm(gradient.data), 2);
    scale = std::min(1.0, config_.clip_norm / (std::sqrt(squares) + 1e-6));  // PyTorch's constant
  }
  for (const auto& [name, gradient] : gradients) {
    Array& parameter = parameters.at(name);
    require(parameter.shape == gradient.shape, ErrorKind::shape,
            "[reference] update of '{}': got a gradient {}, expected {}", name,
            to_string(gradient.shape), to_string(parameter.shape));
    Vector g = gradient.data;
    for (double& value : g) {
      value *= scale;
      if (config_.clip_value > 0)
        value = std::clamp(value, -config_.clip_value, config_.clip_value);
    }
    State& state = states_[name];
    for (Vector& slot : state) slot.resize(g.size(), 0.0);
    Step each = {parameter.data, std::move(g),
                 state,          config_.decay_bias_and_norm || parameter.shape.rank() > 1,
                 step,           learning_rate};
    std::visit(each, config_.rule);
  }
}

}  // namespace artel::reference
