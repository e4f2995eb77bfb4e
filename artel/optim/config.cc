#include "artel/optim/config.h"

#include <cmath>
#include <type_traits>

#include "artel/base/registry.h"
#include "artel/optim/kernels.h"
#include "artel/optim/rates.h"

namespace artel::optim {
namespace {

// The rules by their names, with the usual settings, and variants that have a name of their own.
Registry<OptimizerConfig>::Entries builtin_presets() {
  Registry<OptimizerConfig>::Entries entries;
  const auto add = [&]<typename T>(const T& rule) {
    if constexpr (!std::is_same_v<T, Custom>)
      entries.emplace_back(T::kName, OptimizerConfig{T::kUsualRate, rule});
  };
  [&]<typename... T>(const std::variant<T...>*) {
    (add(T()), ...);
  }(static_cast<const Rule*>(nullptr));
  entries.emplace_back("momentum", sgd(Sgd::kUsualRate, {.momentum = 0.9}));
  entries.emplace_back("nesterov", sgd(Sgd::kUsualRate, {.momentum = 0.9, .nesterov = true}));
  return entries;
}

Registry<OptimizerConfig>& presets() {
  static Registry<OptimizerConfig> all("optimizer", builtin_presets(), Names::words);
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
  return std::visit(
      []<typename T>(const T& settings) -> std::string_view {
        if constexpr (std::is_same_v<T, Custom>)
          return settings.name;
        else
          return T::kName;
      },
      rule);
}

void register_optimizer(const OptimizerConfig& config) {
  require(std::holds_alternative<Custom>(config.rule), ErrorKind::invalid_argument,
          "[optimizer {}] is known already, expected a rule of your own", config.name());
  check(config);
  presets().add(std::string(config.name()), config);
}

std::vector<std::string> optimizer_names() { return presets().names(); }

OptimizerConfig optimizer_from_options(const Options& options) {
  const std::vector<std::string> names = optimizer_names();
  const std::string& name = names[chosen_name("optimizer", options, names)];
  OptimizerConfig config = presets().at(name);
  read_options(fmt::format("optimizer {}", name), options, config);
  check(config);
  return config;
}

Options to_options(const OptimizerConfig& config) { return write_options(config.name(), config); }

bool leaves_zeros_alone(const OptimizerConfig& config) {
  if (config.average > 0) return false;
  if (const auto* sgd = std::get_if<Sgd>(&config.rule))
    return sgd->momentum == 0 && sgd->weight_decay == 0;
  const auto* adagrad = std::get_if<Adagrad>(&config.rule);
  return adagrad && adagrad->weight_decay == 0 && adagrad->epsilon > 0;
}

void check(const OptimizerConfig& config) {
  const auto* own = std::get_if<Custom>(&config.rule);
  if (own) {
    require(!own->name.empty() && own->update && own->slots.size() <= kernels::kMostSlots,
            ErrorKind::invalid_argument,
            "[optimizer {}] got {} state slots and {}, expected a name, an update function, and at "
            "most {} slots",
            own->name, own->slots.size(), own->update ? "a function" : "no function",
            kernels::kMostSlots);
    std::vector<std::string> taken = {"name"};  // settings of every optimizer
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
  const bool norms = std::holds_alternative<Lars>(config.rule) ||
                     std::holds_alternative<Lamb>(config.rule) || (own && own->whole_parameters);
  require(!config.lazy_rows || (config.average == 0 && !norms), ErrorKind::invalid_argument,
          "[optimizer {}] lazy_rows: got true with {}, expected false", config.name(),
          norms ? "a rule that computes norms of whole parameters" : "averaged weights");
  const Sgd* sgd = std::get_if<Sgd>(&config.rule);
  require(!sgd || !sgd->nesterov || (sgd->momentum > 0 && sgd->dampening == 0),
          ErrorKind::invalid_argument,
          "[optimizer sgd] nesterov: needs momentum above 0 and no dampening; try momentum = 0.9");
}

}  // namespace artel::optim
