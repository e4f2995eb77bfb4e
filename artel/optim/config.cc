#include "artel/optim/config.h"

#include <array>
#include <cmath>

#include "artel/base/error.h"

namespace artel::optim {
namespace {

// In the order of the alternatives of Rule.
constexpr std::array<std::string_view, std::variant_size_v<Rule>> kRuleNames = {
    "sgd", "adagrad", "rmsprop", "adam", "adamw", "lars", "lamb"};

struct Preset {
  std::string_view name;
  OptimizerConfig config;
};

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"sgd", sgd(0.01)},
      {"momentum", sgd(0.01, {.momentum = 0.9})},
      {"nesterov", sgd(0.01, {.momentum = 0.9, .nesterov = true})},
      {"adagrad", adagrad(0.01)},
      {"rmsprop", rmsprop(0.01)},
      {"adam", adam(0.001)},
      {"adamw", adamw(0.001)},
      {"lars", lars(0.1)},
      {"lamb", lamb(0.001)},
  };
  return all;
}

// A field visitor that checks the range each setting must lie in.
struct RangeCheck {
  std::string_view rule;

  void operator()(std::string_view key, double value) const {
    const bool below_one = key.starts_with("beta") || key == "smoothing" || key == "momentum";
    require(std::isfinite(value) && value >= 0 && (!below_one || value < 1),
            ErrorKind::invalid_argument, "[optimizer {}] {}: got {}, expected {}", rule, key, value,
            below_one ? "a number in [0, 1)" : "a number that is not negative");
  }
  void operator()(std::string_view, bool) const {}
};

}  // namespace

std::string_view OptimizerConfig::name() const { return kRuleNames[rule.index()]; }

OptimizerConfig sgd(double learning_rate, Sgd settings) { return {learning_rate, settings}; }
OptimizerConfig adagrad(double learning_rate, Adagrad settings) {
  return {learning_rate, settings};
}
OptimizerConfig rmsprop(double learning_rate, RmsProp settings) {
  return {learning_rate, settings};
}
OptimizerConfig adam(double learning_rate, Adam settings) { return {learning_rate, settings}; }
OptimizerConfig adamw(double learning_rate, AdamW settings) { return {learning_rate, settings}; }
OptimizerConfig lars(double learning_rate, Lars settings) { return {learning_rate, settings}; }
OptimizerConfig lamb(double learning_rate, Lamb settings) { return {learning_rate, settings}; }

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.emplace_back(preset.name);
  return names;
}

OptimizerConfig optimizer_from_options(const Options& options) {
  const Preset& preset = presets()[chosen_name("optimizer", options, optimizer_names())];
  OptimizerConfig config = preset.config;
  read_options(fmt::format("optimizer {}", preset.name), options, config);
  check(config);
  return config;
}

Options to_options(const OptimizerConfig& config) { return write_options(config.name(), config); }

void check(const OptimizerConfig& config) {
  OptimizerConfig(config).visit(RangeCheck{config.name()});
  const Sgd* sgd = std::get_if<Sgd>(&config.rule);
  require(!sgd || !sgd->nesterov || (sgd->momentum > 0 && sgd->dampening == 0),
          ErrorKind::invalid_argument,
          "[optimizer sgd] nesterov: needs momentum above 0 and no dampening; try momentum = 0.9");
}

}  // namespace artel::optim
