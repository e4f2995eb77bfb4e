#include "artel/optim/config.h"

#include <array>
#include <cmath>

#include "artel/base/registry.h"
#include "artel/optim/kernels.h"
#include "artel/optim/rates.h"

namespace artel::optim {
namespace {

// In the order of the alternatives of Rule; a rule of a user has a name of its own.
constexpr std::array<std::string_view, std::variant_size_v<Rule> - 1> kRuleNames = {
    "sgd", "adagrad", "rmsprop", "adam", "adamw", "lars", "lamb"};

Registry<OptimizerConfig>& presets() {
  static Registry<OptimizerConfig> all(
      "optimizer",
      {
          {"sgd", sgd(0.01)},
          {"momentum", sgd(0.01, {.momentum = 0.9})},
          {"nesterov", sgd(0.01, {.momentum = 0.9, .nesterov = true})},
          {"adagrad", adagrad(0.01)},
          {"rmsprop", rmsprop(0.01)},
          {"adam", adam(0.001)},
          {"adamw", adamw(0.001)},
          {"lars", lars(0.1)},
          {"lamb", lamb(0.001)},
      },
      Names::words);
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
  void operator()(std::string_view key, int64_t value) const {
    require(value >= 1, ErrorKind::invalid_argument,
            "[optimizer {}] {}: got {}, expected a number of 1 or more", rule, key, value);
  }
  void operator()(std::string_view, bool) const {}
  void operator()(std::string_view, const std::string&) const {}
};

}  // namespace

std::string_view OptimizerConfig::name() const {
  const auto* own = std::get_if<Custom>(&rule);
  return own ? std::string_view(own->name) : kRuleNames[rule.index()];
}

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

OptimizerConfig custom(double learning_rate, Custom settings) {
  return {learning_rate, std::move(settings)};
}

void register_optimizer(const OptimizerConfig& config) {
  require(std::holds_alternative<Custom>(config.rule), ErrorKind::invalid_argument,
          "[optimizer {}] is known already, expected a rule of your own", config.name());
  check(config);
  presets().add(std::string(config.name()), config);
}

std::vector<std::string> optimizer_names() { return presets().names(); }

bool needs_whole_parameters(const OptimizerConfig& config) {
  const auto* own = std::get_if<Custom>(&config.rule);
  return own ? own->whole
             : std::holds_alternative<Lars>(config.rule) ||
                   std::holds_alternative<Lamb>(config.rule);
}

OptimizerConfig optimizer_from_options(const Options& options) {
  const std::vector<std::string> names = optimizer_names();
  const std::string& name = names[chosen_name("optimizer", options, names)];
  OptimizerConfig config = presets().at(name);
  read_options(fmt::format("optimizer {}", name), options, config);
  check(config);
  return config;
}

Options to_options(const OptimizerConfig& config) { return write_options(config.name(), config); }

void check(const OptimizerConfig& config) {
  const auto* own = std::get_if<Custom>(&config.rule);
  if (own) {
    require(!own->name.empty() && own->update && own->slots.size() <= kernels::kMostSlots,
            ErrorKind::invalid_argument,
            "[optimizer {}] got {} slots of state and {}, expected a name, a function that updates "
            "and {} slots at most",
            own->name, own->slots.size(), own->update ? "a function" : "no function",
            kernels::kMostSlots);
    std::vector<std::string> taken = {"name"};  // what every optimizer has
    OptimizerConfig{.rule = Custom{}}.visit(
        [&](std::string_view key, auto&) { taken.emplace_back(key); });
    for (const auto& [key, value] : own->settings)
      require(is_word(key) && std::ranges::count(taken, key) == 0, ErrorKind::invalid_argument,
              "[optimizer {}] got a setting named '{}', expected a word other than {}", own->name,
              key, join(taken, ", "));
  }
  OptimizerConfig checked = config;
  if (own) std::get<Custom>(checked.rule).settings.clear();  // these are a matter of its own
  checked.visit(RangeCheck{config.name()});
  parse_rates(config.rates);
  require(config.average <= 1, ErrorKind::invalid_argument,
          "[optimizer {}] average: got {}, expected at most 1, the mean over all steps; try 0.999",
          config.name(), config.average);
  const Sgd* sgd = std::get_if<Sgd>(&config.rule);
  require(!sgd || !sgd->nesterov || (sgd->momentum > 0 && sgd->dampening == 0),
          ErrorKind::invalid_argument,
          "[optimizer sgd] nesterov: needs momentum above 0 and no dampening; try momentum = 0.9");
}

}  // namespace artel::optim
