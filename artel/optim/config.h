// The optimizer of a training, as a value: `optim::sgd(0.1, {.momentum = 0.9})`.
//
//   artel::Trainer adam(cluster, model, {.optimizer = artel::optim::adamw(3e-4, {.beta2 = 0.98})});
//
// Each rule is a struct of its settings with the usual defaults: its name, the usual learning rate,
// and each setting once, in `visit`. `weight_decay` adds that much of a
// parameter to its gradient (L2), except for AdamW, LARS and LAMB, which apply it as their papers
// describe. docs/optimizers.md has the formulas.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "artel/optim/options.h"

namespace artel::optim {

// The fields that Adam and its relatives share.
void visit_moments(auto& rule, auto&& field) {
  field("beta1", rule.beta1);
  field("beta2", rule.beta2);
  field("epsilon", rule.epsilon);
  field("weight_decay", rule.weight_decay);
}

// Plain, with momentum, or with Nesterov's.
struct Sgd {
  static constexpr std::string_view kName = "sgd";
  static constexpr double kUsualRate = 0.01;

  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;

  void visit(auto&& field) {
    field("momentum", momentum);
    field("dampening", dampening);
    field("nesterov", nesterov);
    field("weight_decay", weight_decay);
  }
};

struct Adagrad {
  static constexpr std::string_view kName = "adagrad";
  static constexpr double kUsualRate = 0.01;

  double epsilon = 1e-10;
  double weight_decay = 0;

  void visit(auto&& field) {
    field("epsilon", epsilon);
    field("weight_decay", weight_decay);
  }
};

struct RmsProp {
  static constexpr std::string_view kName = "rmsprop";
  static constexpr double kUsualRate = 0.01;

  double smoothing = 0.99;
  double epsilon = 1e-8;
  double momentum = 0;
  bool centered = false;
  double weight_decay = 0;

  void visit(auto&& field) {
    field("smoothing", smoothing);
    field("epsilon", epsilon);
    field("momentum", momentum);
    field("centered", centered);
    field("weight_decay", weight_decay);
  }
};

struct Adam {
  static constexpr std::string_view kName = "adam";
  static constexpr double kUsualRate = 0.001;

  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;

  void visit(auto&& field) { visit_moments(*this, field); }
};

// Adam with decoupled weight decay.
struct AdamW {
  static constexpr std::string_view kName = "adamw";
  static constexpr double kUsualRate = 0.001;

  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;

  void visit(auto&& field) { visit_moments(*this, field); }
};

// Momentum whose rate for each tensor follows |parameter| / |gradient|: for large batches.
struct Lars {
  static constexpr std::string_view kName = "lars";
  static constexpr double kUsualRate = 0.1;

  double momentum = 0.9;
  double trust = 0.001;
  double epsilon = 1e-9;
  double weight_decay = 1e-4;

  void visit(auto&& field) {
    field("momentum", momentum);
    field("trust", trust);
    field("epsilon", epsilon);
    field("weight_decay", weight_decay);
  }
};

// AdamW's direction with LARS's scaling of each tensor.
struct Lamb {
  static constexpr std::string_view kName = "lamb";
  static constexpr double kUsualRate = 0.001;

  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;

  void visit(auto&& field) { visit_moments(*this, field); }
};

// The arguments of a custom rule: some elements of a parameter.
struct CustomStep {
  int64_t number = 1;  // of the step, from 1
  float learning_rate = 0;
  bool decay = true;  // whether weight decay is for this parameter
  const std::map<std::string, double>& settings;
  std::span<float> parameter;
  std::span<const float> gradient;          // averaged and clipped
  std::span<const std::span<float>> state;  // one for each slot, as long as the parameter
};

// A rule of your own: `update` changes the parameter and the state in place. It is called from
// several threads at once for different parts of a parameter, wherever those are cut, or, if it
// needs `whole_parameters` because it computes norms, once for each.
//
//   optim::custom(0.1, {.name = "signum",
//                       .update = [](const optim::CustomStep& step) { ... },
//                       .slots = {"momentum"},
//                       .settings = {{"beta", 0.9}}})
struct Custom {
  std::string name;
  std::function<void(const CustomStep&)> update = {};
  std::vector<std::string> slots = {};          // of state, three at most; zero at first
  std::map<std::string, double> settings = {};  // options with their defaults
  bool whole_parameters = false;

  void visit(auto&& field) {
    for (auto& [key, value] : settings) field(key, value);
  }
};

using Rule = std::variant<Sgd, Adagrad, RmsProp, Adam, AdamW, Lars, Lamb, Custom>;

struct OptimizerConfig {
  double learning_rate = 0.01;
  Rule rule = Sgd{};
  // Each element of the gradient is kept within [-clip_value, clip_value]; 0 turns it off.
  double clip_value = 0;
  // The gradient over all parameters is scaled down to this norm (see clipping.h); 0: off.
  double clip_norm = 0;
  // By default, weight decay does not apply to biases and the parameters of normalisation layers.
  bool decay_bias_and_norm = false;
  // Rows of embedding tables whose gradient is zero in a step keep their values and their state
  // ("lazy" momentum). Not with averages or with rules that compute norms.
  bool lazy_rows = false;
  // Factors of the learning rate by name prefix: "head: 10, encoder.: 0.1". The longest matching
  // prefix counts.
  std::string rates = {};
  // Averages of the trained weights. Below 1: a moving average that keeps this share at each step
  // (EMA). 1: the mean over all steps (SWA). Both start at step `average_from`. 0: none.
  double average = 0;
  int64_t average_from = 1;

  // "sgd", "adamw", ...
  std::string_view name() const;

  void visit(auto&& field) {
    field("lr", learning_rate);
    std::visit([&](auto& settings) { settings.visit(field); }, rule);
    field("clip_value", clip_value);
    field("clip_norm", clip_norm);
    field("decay_bias_and_norm", decay_bias_and_norm);
    field("lazy_rows", lazy_rows);
    field("rates", rates);
    field("average", average);
    field("average_from", average_from);
  }
};

inline OptimizerConfig sgd(double learning_rate, Sgd settings = {}) {
  return {learning_rate, settings};
}
inline OptimizerConfig adagrad(double learning_rate, Adagrad settings = {}) {
  return {learning_rate, settings};
}
inline OptimizerConfig rmsprop(double learning_rate, RmsProp settings = {}) {
  return {learning_rate, settings};
}
inline OptimizerConfig adam(double learning_rate, Adam settings = {}) {
  return {learning_rate, settings};
}
inline OptimizerConfig adamw(double learning_rate, AdamW settings = {}) {
  return {learning_rate, settings};
}
inline OptimizerConfig lars(double learning_rate, Lars settings = {}) {
  return {learning_rate, settings};
}
inline OptimizerConfig lamb(double learning_rate, Lamb settings = {}) {
  return {learning_rate, settings};
}
inline OptimizerConfig custom(double learning_rate, Custom settings) {
  return {learning_rate, std::move(settings)};
}

// Registers a custom rule under its name, for configuration files and parameter servers. `config`
// has its defaults. Replaces a rule that the program registered earlier. Throws for a built-in
// name. All workers and servers must register the same rules.
void register_optimizer(const OptimizerConfig& config);

// The names that `optimizer_from_options` accepts: those of the rules, "momentum" and "nesterov",
// and those that were registered.
std::vector<std::string> optimizer_names();

// From {"name", "adam"}, {"lr", "1e-3"}, ...: without a name it is SGD, and
// options that are absent keep the rule's defaults. An unknown name or option, a wrong type or a
// value out of range throws an Error.
OptimizerConfig optimizer_from_options(const Options& options);

// The inverse: every option with its value.
Options to_options(const OptimizerConfig& config);

// True if an element with a zero gradient keeps its value and state, bit for bit.
bool leaves_zeros_alone(const OptimizerConfig& config);

// Throws an Error that names the first setting out of its range.
void check(const OptimizerConfig& config);

}  // namespace artel::optim
