#include "artel/optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "artel/base/error.h"

namespace artel::optim {
namespace {

constexpr ErrorKind kInvalid = ErrorKind::invalid_argument;

// In the order of the alternatives of ScheduleShape.
constexpr std::array<std::string_view, std::variant_size_v<ScheduleShape>> kShapeNames = {
    "constant", "step", "multi_step", "cosine", "polynomial", "one_cycle", "plateau"};

template <size_t... kIndex>
std::vector<ScheduleShape> default_shapes(std::index_sequence<kIndex...>) {
  return {ScheduleShape(std::in_place_index<kIndex>)...};
}

// Interpolates from `from` at share 0 to `to` at share 1 along half a cosine.
double half_cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

// The position of a step in the run, as input of the shapes.
struct Position {
  double steps;        // since the start
  double units;        // time since the start in the configured unit
  double total_steps;  // of the run
  double warmup_steps;

  // Progress from the end of the warm-up to the end of training, in [0, 1].
  double share() const {
    if (total_steps <= warmup_steps) return 1;
    return std::clamp((steps - warmup_steps) / (total_steps - warmup_steps), 0.0, 1.0);
  }
};

// floor(time / part), tolerant of rounding errors as in 0.3 / 0.1. Otherwise the last part would
// start a step late.
double whole_parts(double time, double part) {
  constexpr double kHair = 1e-12;
  return std::floor(time / part * (1 + kHair));
}

double multiplier(const Constant&, const Position&) { return 1; }

double multiplier(const StepDecay& decay, const Position& at) {
  return std::pow(decay.factor, whole_parts(at.units, decay.every));
}

double multiplier(const MultiStep& decay, const Position& at) {
  const auto passed = std::count_if(
      decay.milestones.begin(), decay.milestones.end(),
      [&](double milestone) { return milestone <= 0 || whole_parts(at.units, milestone) >= 1; });
  return std::pow(decay.factor, static_cast<double>(passed));
}

double multiplier(const Cosine& cosine, const Position& at) {
  return half_cosine(1, cosine.final_fraction, at.share());
}

double multiplier(const Polynomial& polynomial, const Position& at) {
  return std::pow(1 - at.share(), polynomial.power);
}

// The peak and the end fall on whole steps: the last step has the lowest rate.
double multiplier(const OneCycle& cycle, const Position& at) {
  const double peak = cycle.rise * at.total_steps - 1, last = at.total_steps - 1;
  const double low = 1 / cycle.initial_divisor;
  if (at.steps <= peak) return half_cosine(low, 1, peak > 0 ? at.steps / peak : 1);
  return half_cosine(1, low / cycle.final_divisor,
                     last > peak ? std::min(1.0, (at.steps - peak) / (last - peak)) : 1);
}

double multiplier(const Plateau&, const Position&) { return 1; }

void check(const Constant&) {}
void check(const StepDecay& decay) {
  require(decay.every > 0, kInvalid, "[schedule step] every: got {}, expected more than 0",
          decay.every);
}
void check(const MultiStep& decay) {
  require(!decay.milestones.empty(), kInvalid,
          "[schedule multi_step] milestones: got none; try milestones = [30, 60]");
}
void check(const Cosine&) {}
void check(const Polynomial&) {}
void check(const OneCycle& cycle) {
  require(
      cycle.rise >= 0 && cycle.rise <= 1 && cycle.initial_divisor > 0 && cycle.final_divisor > 0,
      kInvalid,
      "[schedule one_cycle] got rise {} and divisors {} and {}, expected a share and "
      "positive numbers",
      cycle.rise, cycle.initial_divisor, cycle.final_divisor);
}
void check(const Plateau& plateau) {
  require(plateau.factor > 0 && plateau.factor < 1 && plateau.patience >= 0, kInvalid,
          "[schedule plateau] got factor {} and patience {}, expected a factor in (0, 1) and a "
          "patience that is not negative",
          plateau.factor, plateau.patience);
}

void check(const ScheduleConfig& config) {
  std::visit([](const auto& shape) { check(shape); }, config.shape);
  require(config.unit == "epoch" || config.unit == "step", kInvalid,
          "[schedule] unit: got '{}', expected 'epoch' or 'step'", config.unit);
  require(config.scaling == "none" || config.scaling == "linear" || config.scaling == "sqrt",
          kInvalid, "[schedule] scaling: got '{}', expected 'none', 'linear' or 'sqrt'",
          config.scaling);
  require(config.warmup >= 0 && config.reference_batch > 0, kInvalid,
          "[schedule] got warmup {} and reference_batch {}, expected a warmup of 0 or more and a "
          "reference_batch above 0",
          config.warmup, config.reference_batch);
  require(config.warmup == 0 || !std::holds_alternative<OneCycle>(config.shape), kInvalid,
          "[schedule one_cycle] warmup: got {}, but the cycle begins with its own rise; try "
          "rise instead",
          config.warmup);
}

double batch_factor(const ScheduleConfig& config, int64_t batch_size) {
  const double factor =
      static_cast<double>(batch_size) / static_cast<double>(config.reference_batch);
  if (config.scaling == "linear") return factor;
  return config.scaling == "sqrt" ? std::sqrt(factor) : 1;
}

}  // namespace

std::string_view ScheduleConfig::name() const { return kShapeNames[shape.index()]; }

std::vector<std::string> schedule_names() { return {kShapeNames.begin(), kShapeNames.end()}; }

ScheduleConfig schedule_from_options(const Options& options) {
  const size_t index = chosen_name("schedule", options, schedule_names());
  ScheduleConfig config;
  config.shape = default_shapes(std::make_index_sequence<kShapeNames.size()>())[index];
  read_options(fmt::format("schedule {}", kShapeNames[index]), options, config);
  check(config);
  return config;
}

Options to_options(const ScheduleConfig& config) { return write_options(config.name(), config); }

Schedule::Schedule(ScheduleConfig config, double learning_rate, Horizon horizon)
    : config_(std::move(config)),
      learning_rate_(learning_rate * batch_factor(config_, horizon.batch_size)),
      horizon_(horizon),
      steps_per_unit_(config_.unit == "epoch" ? static_cast<double>(horizon.steps_per_epoch) : 1),
      warmup_steps_(config_.warmup * steps_per_unit_) {
  check(config_);
  require(horizon.total_steps > 0 && horizon.steps_per_epoch > 0 && horizon.batch_size > 0,
          kInvalid,
          "[schedule] got {} steps, {} in an epoch and batches of {}, expected positive numbers",
          horizon.total_steps, horizon.steps_per_epoch, horizon.batch_size);
}

double Schedule::at(int64_t step) const {
  const auto steps = static_cast<double>(std::min(step, horizon_.total_steps) - 1);
  const Position position = {.steps = steps,
                             .units = steps / steps_per_unit_,
                             .total_steps = static_cast<double>(horizon_.total_steps),
                             .warmup_steps = warmup_steps_};
  const double warmup = steps < warmup_steps_ ? config_.warmup_start + (1 - config_.warmup_start) *
                                                                           steps / warmup_steps_
                                              : 1;
  return learning_rate_ * warmup *
         std::visit([&](const auto& shape) { return multiplier(shape, position); }, config_.shape);
}

bool PlateauReducer::observe(double metric) {
  const double margin = settings_.threshold * (settings_.maximize ? 1 : -1);
  const double bar = state_.best * (1 + margin);
  const bool better = !state_.started || (settings_.maximize ? metric > bar : metric < bar);
  state_.started = true;
  if (better) {
    state_.best = metric;
    state_.bad_epochs = 0;
  } else {
    ++state_.bad_epochs;
  }
  if (state_.cooldown_left > 0) {
    --state_.cooldown_left;
    state_.bad_epochs = 0;
  }
  if (state_.bad_epochs <= settings_.patience) return false;
  const double before = state_.factor;
  state_.factor = std::max(settings_.floor, state_.factor * settings_.factor);
  state_.cooldown_left = settings_.cooldown;
  state_.bad_epochs = 0;
  return state_.factor < before;
}

}  // namespace artel::optim
