#include "artel/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "artel/base/error.h"
#include "artel/optim/kernels.h"

namespace artel::optim {

struct Optimizer::Update {
  ThreadPool& pool;
  bool decay;
  int64_t step;
  float learning_rate;
  kernels::Range range;  // all elements
  Norms norms = {};      // of the whole parameter
};

namespace {

// 64 KiB of floats. Less work does not justify waking another thread.
constexpr int64_t kGrain = 16384;

kernels::Range part(kernels::Range range, size_t begin, size_t count) {
  range.parameter += begin;
  range.gradient += begin;
  for (float*& slot : range.slots)
    if (slot) slot += begin;
  range.elements = count;
  return range;
}

// Runs kernel(part) on all threads, over disjoint parts that cover the range.
template <typename Kernel>
void sweep(ThreadPool& pool, const kernels::Range& range, const Kernel& kernel) {
  parallel_for(pool, static_cast<int64_t>(range.elements), kGrain, [&](int64_t begin, int64_t end) {
    kernel(part(range, static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  });
}

kernels::Moments moments_of(const auto& rule, int64_t step) {
  const auto t = static_cast<double>(step);
  return {.beta1 = static_cast<float>(rule.beta1),
          .beta2 = static_cast<float>(rule.beta2),
          .epsilon = static_cast<float>(rule.epsilon),
          .correction1 = static_cast<float>(1 / (1 - std::pow(rule.beta1, t))),
          .correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(rule.beta2, t)))};
}

std::vector<uint8_t> zeros_of(ThreadPool& pool, std::span<const float> values) {
  std::vector<uint8_t> zeros(values.size());
  parallel_for(pool, std::ssize(values), kGrain, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      zeros[i] = values[i] == 0;
  });
  return zeros;
}

void set_zeros(ThreadPool& pool, const std::vector<uint8_t>& zeros, std::span<float> values) {
  parallel_for(pool, std::ssize(values), kGrain, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      if (zeros[i]) values[i] = 0;
  });
}

}  // namespace

bool decays(const OptimizerConfig& config, const Shape& shape) {
  return config.decay_bias_and_norm || shape.rank() > 1;
}

Optimizer::Optimizer(const OptimizerConfig& config)
    : clip_value_(static_cast<float>(config.clip_value)),
      rates_(parse_rates(config.rates)),
      average_(config.average),
      average_from_(config.average_from) {}

std::vector<std::string> Optimizer::slots() const {
  std::vector<std::string> names = own_slots();
  if (average_ > 0) names.emplace_back(kAverageSlot);
  return names;
}

// Before `average_from_`, the average equals the weights. From then on it is their mean, until the
// share of a moving average is larger.
float Optimizer::average_share(int64_t step) const {
  const int64_t averaged = step - average_from_ + 1;
  return averaged <= 1
             ? 1.0f
             : static_cast<float>(std::max(1 - average_, 1 / static_cast<double>(averaged)));
}

void Optimizer::update(ThreadPool& pool, const ParameterInfo& info, int64_t step,
                       float learning_rate, float gradient_scale, std::span<float> parameter,
                       std::span<const float> gradient,
                       std::span<const std::span<float>> state) const {
  const Part all = {info, step, learning_rate, gradient_scale, parameter, gradient, state};
  finish(pool, all, kernels::sum_of(begin(pool, all)));
}

std::vector<Norms> Optimizer::begin(ThreadPool& pool, const Part& part) const {
  return measure(checked(pool, part));
}

void Optimizer::finish(ThreadPool& pool, const Part& part, const Norms& norms) const {
  Update update = checked(pool, part);
  update.norms = norms;
  const std::vector<uint8_t> zeros =
      part.info.keep_zeros ? zeros_of(pool, part.parameter) : std::vector<uint8_t>();
  apply(update);
  if (part.info.keep_zeros) set_zeros(pool, zeros, part.parameter);
  if (average_ == 0) return;
  const float share = average_share(part.step);
  parallel_for(pool, static_cast<int64_t>(part.parameter.size()), kGrain,
               [&, average = part.state.back()](int64_t begin, int64_t end) {
                 for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
                   average[i] += share * (part.parameter[i] - average[i]);
               });
}

Optimizer::Update Optimizer::checked(ThreadPool& pool, const Part& part) const {
  const auto& [info, step, learning_rate, gradient_scale, parameter, gradient, state] = part;
  kernels::Range range = {.parameter = parameter.data(),
                          .gradient = gradient.data(),
                          .slots = {},
                          .elements = parameter.size(),
                          .filter = {.scale = gradient_scale, .limit = clip_value_}};
  const size_t expected = slots().size();
  require(
      gradient.size() == parameter.size() && state.size() == expected && step >= 1,
      ErrorKind::invalid_argument,
      "[optimizer] update of '{}' at step {}: got a gradient of {} elements and {} state slots, "
      "expected {} and {}, and steps that count from 1",
      info.name, step, gradient.size(), state.size(), parameter.size(), expected);
  for (size_t k = 0; k < state.size(); ++k) {
    require(state[k].size() == parameter.size(), ErrorKind::invalid_argument,
            "[optimizer] update of '{}': state slot {} has {} elements, expected {}", info.name, k,
            state[k].size(), parameter.size());
    if (k < kernels::kMostSlots) range.slots[k] = state[k].data();
  }
  const auto rate = static_cast<float>(rate_factor(rates_, info.name)) * learning_rate;
  return {pool, info.decay, step, rate, range};
}

namespace {

// Base of all rules: settings and weight decay.
template <typename Settings>
class RuleOptimizer : public Optimizer {
 public:
  explicit RuleOptimizer(const OptimizerConfig& config)
      : Optimizer(config), rule_(std::get<Settings>(config.rule)) {}

 protected:
  float decay(const Update& update) const {
    return update.decay ? static_cast<float>(rule_.weight_decay) : 0;
  }

  const Settings rule_;
};

class SgdOptimizer : public RuleOptimizer<Sgd> {
  using RuleOptimizer::RuleOptimizer;

  std::vector<std::string> own_slots() const override {
    if (rule_.momentum == 0) return {};
    return {"momentum_buffer"};
  }

  void apply(const Update& update) const override {
    if (rule_.momentum == 0) {
      const kernels::SgdStep step = {.rate = update.learning_rate, .decay = decay(update)};
      return sweep(update.pool, update.range, [&](const auto& part) { kernels::sgd(step, part); });
    }
    // The buffer starts as the first gradient, undamped.
    const double fresh = update.step == 1 ? 1 : 1 - rule_.dampening;
    const kernels::MomentumStep step = {.rate = update.learning_rate,
                                        .decay = decay(update),
                                        .momentum = static_cast<float>(rule_.momentum),
                                        .fresh = static_cast<float>(fresh),
                                        .nesterov = rule_.nesterov};
    sweep(update.pool, update.range, [&](const auto& part) { kernels::momentum(step, part); });
  }
};

class AdagradOptimizer : public RuleOptimizer<Adagrad> {
  using RuleOptimizer::RuleOptimizer;

  std::vector<std::string> own_slots() const override { return {"sum"}; }

  void apply(const Update& update) const override {
    const kernels::AdagradStep step = {.rate = update.learning_rate,
                                       .decay = decay(update),
                                       .epsilon = static_cast<float>(rule_.epsilon)};
    sweep(update.pool, update.range, [&](const auto& part) { kernels::adagrad(step, part); });
  }
};

class RmsPropOptimizer : public RuleOptimizer<RmsProp> {
  using RuleOptimizer::RuleOptimizer;

  std::vector<std::string> own_slots() const override {
    std::vector<std::string> names = {"square_avg"};
    if (rule_.centered) names.emplace_back("grad_avg");
    if (rule_.momentum > 0) names.emplace_back("momentum_buffer");
    return names;
  }

  void apply(const Update& update) const override {
    const kernels::RmsPropStep step = {.rate = update.learning_rate,
                                       .decay = decay(update),
                                       .smoothing = static_cast<float>(rule_.smoothing),
                                       .epsilon = static_cast<float>(rule_.epsilon),
                                       .momentum = static_cast<float>(rule_.momentum),
                                       .centered = rule_.centered};
    sweep(update.pool, update.range, [&](const auto& part) { kernels::rmsprop(step, part); });
  }
};

// Adam adds the decay to the gradient; AdamW shrinks the parameter by rate * decay instead.
template <typename Settings>
class AdamOptimizer : public RuleOptimizer<Settings> {
  using RuleOptimizer<Settings>::RuleOptimizer;

  std::vector<std::string> own_slots() const override { return {"exp_avg", "exp_avg_sq"}; }

  void apply(const Optimizer::Update& update) const override {
    constexpr bool kDecoupled = std::is_same_v<Settings, AdamW>;
    const float decay = this->decay(update);
    const kernels::AdamStep step = {.moments = moments_of(this->rule_, update.step),
                                    .rate = update.learning_rate,
                                    .decay = kDecoupled ? 0 : decay,
                                    .keep = kDecoupled ? 1 - update.learning_rate * decay : 1};
    sweep(update.pool, update.range, [&](const auto& part) { kernels::adam(step, part); });
  }
};

// The learning rate is part of the momentum, as in the paper, so the momentum kernel runs with rate
// 1.
class LarsOptimizer : public RuleOptimizer<Lars> {
  using RuleOptimizer::RuleOptimizer;

  std::vector<std::string> own_slots() const override { return {"momentum_buffer"}; }

  void apply(const Update& update) const override {
    const kernels::MomentumStep step = {.rate = 1,
                                        .decay = decay(update),
                                        .momentum = static_cast<float>(rule_.momentum),
                                        .fresh = update.learning_rate * trust_ratio(update),
                                        .nesterov = false};
    sweep(update.pool, update.range, [&](const auto& part) { kernels::momentum(step, part); });
  }

  Scope scope() const override { return Scope::norms; }

  std::vector<Norms> measure(const Update& update) const override {
    if (!update.decay) return {};
    const kernels::Range& range = update.range;
    return kernels::for_chunks(update.pool, range.elements, [&](size_t begin, size_t count) {
      return Norms{kernels::squares(range.parameter + begin, count, {}),
                   kernels::squares(range.gradient + begin, count, range.filter)};
    });
  }

  float trust_ratio(const Update& update) const {
    if (!update.decay) return 1;
    const double parameter = std::sqrt(update.norms.parameter);
    const double gradient = std::sqrt(update.norms.direction);
    if (parameter == 0) return 1;  // otherwise zeros would stay zero
    return static_cast<float>(rule_.trust * parameter /
                              (gradient + rule_.weight_decay * parameter + rule_.epsilon));
  }
};

// Two passes, because the norm of the direction must be known before the update. The second pass
// recomputes the direction from the moments, which is cheaper than storing it.
class LambOptimizer : public RuleOptimizer<Lamb> {
  using RuleOptimizer::RuleOptimizer;

  std::vector<std::string> own_slots() const override { return {"exp_avg", "exp_avg_sq"}; }
  Scope scope() const override { return Scope::norms; }

  kernels::LambStep step_of(const Update& update) const {
    return {.moments = moments_of(rule_, update.step), .decay = decay(update)};
  }

  std::vector<Norms> measure(const Update& update) const override {
    return kernels::for_chunks(update.pool, update.range.elements, [&](size_t begin, size_t count) {
      return kernels::lamb_moments(step_of(update), part(update.range, begin, count));
    });
  }

  void apply(const Update& update) const override {
    const kernels::LambStep step = step_of(update);
    const Norms& squares = update.norms;
    const bool adapt = update.decay && squares.parameter > 0 && squares.direction > 0;
    const double ratio = adapt ? std::sqrt(squares.parameter / squares.direction) : 1;
    const auto rate = static_cast<float>(update.learning_rate * ratio);
    sweep(update.pool, update.range,
          [&](const auto& part) { kernels::lamb_apply(step, rate, part); });
  }
};

// A user's function receives gradients after scaling and clipping.
class CustomOptimizer : public Optimizer {
 public:
  explicit CustomOptimizer(const OptimizerConfig& config)
      : Optimizer(config), rule_(std::get<Custom>(config.rule)) {}

  std::vector<std::string> own_slots() const override { return rule_.slots; }
  Scope scope() const override {
    return rule_.whole_parameters ? Scope::parameter : Scope::element;
  }

 private:
  void apply(const Update& update) const override {
    if (rule_.whole_parameters) return apply_to(update, update.range);
    sweep(update.pool, update.range, [&](const auto& part) { apply_to(update, part); });
  }

  void apply_to(const Update& update, const kernels::Range& range) const {
    std::vector<float> gradient(range.gradient, range.gradient + range.elements);
    const float limit = range.filter.limit;
    for (float& g : gradient) {
      g *= range.filter.scale;
      if (limit > 0) g = std::clamp(g, -limit, limit);
    }
    std::vector<std::span<float>> state;
    for (size_t slot = 0; slot < rule_.slots.size(); ++slot)
      state.emplace_back(range.slots[slot], range.elements);
    rule_.update({.number = update.step,
                  .learning_rate = update.learning_rate,
                  .decay = update.decay,
                  .settings = rule_.settings,
                  .parameter = {range.parameter, range.elements},
                  .gradient = gradient,
                  .state = state});
  }

  const Custom rule_;
};

struct MakeOptimizer {
  const OptimizerConfig& config;

  std::unique_ptr<Optimizer> operator()(const Sgd&) const { return make<SgdOptimizer>(); }
  std::unique_ptr<Optimizer> operator()(const Adagrad&) const { return make<AdagradOptimizer>(); }
  std::unique_ptr<Optimizer> operator()(const RmsProp&) const { return make<RmsPropOptimizer>(); }
  std::unique_ptr<Optimizer> operator()(const Adam&) const { return make<AdamOptimizer<Adam>>(); }
  std::unique_ptr<Optimizer> operator()(const AdamW&) const { return make<AdamOptimizer<AdamW>>(); }
  std::unique_ptr<Optimizer> operator()(const Lars&) const { return make<LarsOptimizer>(); }
  std::unique_ptr<Optimizer> operator()(const Lamb&) const { return make<LambOptimizer>(); }

  std::unique_ptr<Optimizer> operator()(const Custom&) const { return make<CustomOptimizer>(); }

  template <typename Type>
  std::unique_ptr<Optimizer> make() const {
    return std::make_unique<Type>(config);
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config) {
  check(config);
  return std::visit(MakeOptimizer{config}, config.rule);
}

}  // namespace artel::optim
