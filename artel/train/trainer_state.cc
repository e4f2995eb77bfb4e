#include "artel/train/trainer_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/exec/devices.h"
#include "artel/exec/numerics.h"
#include "artel/exec/peak.h"
#include "artel/optim/optimizer.h"
#include "artel/predict/batches.h"
#include "artel/predict/load_weights.h"
#include "artel/train/lane_count.h"
#include "artel/train/loop/kept_states.h"
#include "artel/train/loop/saved_state.h"
#include "artel/train/name_prefixes.h"
#include "artel/train/parts/mesh_axes.h"
#include "artel/train/step/exchange.h"
#include "artel/train/step/teacher.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategies/tensor.h"
#include "artel/train/strategy.h"

namespace artel {
namespace {

using Json = nlohmann::json;

// Null represents a number that is not finite.
double number_in(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

Json best_json(const std::optional<BestEpoch>& best) {
  if (!best) return {};
  return {{"by", best->by}, {"value", best->value}, {"epoch", best->epoch}, {"step", best->step}};
}

std::optional<BestEpoch> best_in(const Json& state) {
  // Earlier versions always used the loss and did not store the epoch.
  if (state.contains("best_loss")) {
    const double loss = number_in(state["best_loss"]);
    if (!state.at("has_best") || !std::isfinite(loss)) return {};
    return BestEpoch{.by = "loss", .value = loss};
  }
  const Json& best = state.at("best");
  if (best.is_null()) return {};
  return BestEpoch{best.at("by"), best.at("value"), best.at("epoch"), best.at("step")};
}

constexpr int kMostLanes = 1 << 20;

// A member of an object, if it is a whole number in range.
template <typename T>
T whole_number(const Json& object, const char* name, T least,
               T most = std::numeric_limits<T>::max()) {
  const Json& value = object.at(name);
  if (!value.is_number_integer() || value < least || value > most)
    fail(ErrorKind::corrupt, "[checkpoint] {}: got {}, expected a whole number from {} to {}", name,
         json_excerpt(value), least, most);
  return value.get<T>();
}

// Earlier versions did not store it.
int numerics_in(const Json& state) {
  return state.contains("numerics") ? whole_number(state, "numerics", 1) : 1;
}

}  // namespace

TensorType input_type(const data::SampleLayout& layout) {
  return {layout.input_type, layout.input};
}

TensorType target_type(const data::SampleLayout& layout) {
  require(layout.target_kind != data::TargetKind::none, ErrorKind::invalid_argument,
          "the data set has no targets to learn from");
  return {layout.target_type(), layout.target};
}

TrainerState::TrainerState(Cluster& cluster, Model model, TrainerOptions given)
    : cluster(cluster), model(std::move(model)), options(std::move(given)) {
  if (const StrategyKind& kind = find_strategy(options.strategy); kind.adjust) kind.adjust(options);
  loss = make_loss(options.loss, {options.label_smoothing, options.class_weights});
  test_loss = make_loss(options.loss);
  if (options.teacher) learn_from_teacher();
  const PruningOptions& pruning = options.pruning;
  require(pruning.end == 0 || pruning.end > pruning.begin, ErrorKind::invalid_argument,
          "prune.end: got step {}, expected one after prune.begin = {}", pruning.end,
          pruning.begin);
  const StrategyKind& kind = find_strategy(options.strategy);
  require(!pruning.keeps_zeros() || (!kind.needs_servers && !kind.workload), ErrorKind::unsupported,
          "prune: the updates of strategy \"{}\" do not keep weights at zero; try \"auto\"",
          options.strategy);
  choices.tune = options.tune;
  choices.exact_convolutions = options.exact_convolutions;
  require(options.precision == "fp32" || options.precision == "bf16", ErrorKind::invalid_argument,
          "precision: got \"{}\", expected \"fp32\" or \"bf16\"", options.precision);
  choices.bf16 = options.precision == "bf16";
  require(!choices.bf16 || has_bf16(), ErrorKind::unsupported,
          "train.precision: got \"bf16\", but this processor does not multiply bf16 numbers "
          "(AVX512_BF16); try \"fp32\"");
  choices.device = &device_by_name(
      options.device, {.place = cluster.place_on_machine(), .timeout = options.device_timeout});
  require(!choices.bf16 || choices.device == &cpu(), ErrorKind::unsupported,
          "train.precision: got \"bf16\" on {}, expected \"fp32\"", choices.device->name());
  threads = options.threads > 0 ? options.threads : cluster.cores();
  require(options.lanes >= 0, ErrorKind::invalid_argument,
          "lanes: got {}, expected a positive number, or 0 for the default", options.lanes);
  shards = shards_of(options.strategy_options);
}

void TrainerState::learn_from_teacher() {
  require(options.class_weights.empty(), ErrorKind::unsupported,
          "class_weights: a teacher's outputs have no classes to weigh; leave one of them out");
  require(!find_strategy(options.strategy).workload, ErrorKind::unsupported,
          "strategy \"{}\" computes in its own way, without a teacher; try \"auto\"",
          options.strategy);
  loss = nn::distilled_loss(loss_name(options.loss), loss, options.teacher->options());
}

bool TrainerState::trained(const std::string& name) const {
  return !begins_with_any(name, options.freeze);
}

void TrainerState::build(const TensorType& type) {
  if (built) {
    require(type == sample, ErrorKind::shape, "the model was built for samples {}, not for {}",
            to_string(sample), to_string(type));
    return;
  }
  ModelGraph graph = inference_graph(model, batch_of(type, 1), ShardPart::all(shards));
  const Program program(std::move(graph.graph), {}, choices);
  parameters = Parameters(program.parameter_entries());
  first_values = FirstValues(options.seed, std::move(graph.initialisers));
  check_prefixes("train.freeze", options.freeze, parameters);
  std::vector<std::string> rated;
  for (const optim::RateFactor& rate : optim::parse_rates(options.optimizer.rates))
    rated.push_back(rate.prefix);
  check_prefixes("train.optimizer.rates", rated, parameters);
  sample = type;
  built = true;
}

void TrainerState::choose_lanes(int64_t batch) {
  if (lanes > 0) return;
  const LaneCount count = lanes_of_new_run(
      {.asked = options.lanes,
       .batch = batch,
       .batch_norm = uses_batch_statistics(
           model, sample, [this](const std::string& name) { return trained(name); }),
       .workers = cluster.size(),
       .sharing = mesh_size(options.strategy_options).workers()});
  lanes = count.lanes;
  if (count.raised() && cluster.rank() == 0)
    log(LogLevel::info, "{}", raised_lanes_text(count, cluster.size()));
}

void TrainerState::load_weights(const NamedTensors& weights,
                                const std::function<bool(const std::string&)>& wanted) {
  if (!first_values.pending()) return artel::load_weights(parameters, weights, wanted);
  for (const NamedTensor& weight : fitted_weights(parameters, weights, wanted))
    if (parameters.contains(weight.name) && (!wanted || wanted(weight.name)))
      first_values.load(weight.name, weight.tensor);
}

void TrainerState::drop_quantised() {
  if (!quantised) return;
  predictor.reset();
  quantised.reset();
}

std::unique_ptr<Evaluator> TrainerState::new_evaluator(std::optional<TensorType> y,
                                                       std::vector<Metric> metrics) {
  if (quantised)
    return std::make_unique<Evaluator>(model, sample, std::move(y), test_loss,
                                       quantised->parameters, choices, threads, std::move(metrics),
                                       1, quantised->matrices);
  auto evaluator = std::make_unique<Evaluator>(model, sample, std::move(y), test_loss, parameters,
                                               choices, threads, std::move(metrics), shards);
  evaluator->set_parts(stages.get());
  return evaluator;
}

void TrainerState::fill() {
  require(!in_parts, ErrorKind::invalid_argument,
          "fit: each worker has only a part of the network, because FitOptions::gather_network was "
          "false; use the checkpoint, or train with gather_network = true");
  require(
      !stages, ErrorKind::invalid_argument,
      "the network was divided for predictions, so no worker has all of it; train and save with "
      "another trainer");
  first_values.fill(threads, parameters);
  if (stepper && !pending_optimizer.empty())
    stepper->update().set_state(std::exchange(pending_optimizer, {}));
}

std::vector<Metric> TrainerState::metrics_for(const data::SampleLayout& layout) const {
  if (!options.metrics.empty()) return options.metrics;
  // Targets may be fractions of classes, as with mixup.
  const bool shares = layout.target_kind == data::TargetKind::values && layout.classes > 0 &&
                      layout.target == Shape{layout.classes};
  if (layout.target_kind != data::TargetKind::classes && !shares) return {};
  Metric accuracy = metric_by_name("accuracy");
  accuracy.where_it_fits = true;
  return {accuracy};
}

std::vector<std::string> TrainerState::kept_zeros() const {
  if (!options.pruning.keeps_zeros()) return {};
  return prunable_weights(inference_graph(model, batch_of(sample, 1)).graph);
}

void TrainerState::prune(int64_t steps) {
  const PruningOptions& pruning = options.pruning;
  if (!prunes_after(pruning, step, steps)) return;
  std::map<std::string, std::span<float>> averages;
  for (const Update::Averaged& each : stepper->update().averages())
    averages[each.name] = each.average;
  std::vector<PrunedValues> weights;
  for (const std::string& name : kept_zeros())
    if (trained(name)) {
      const auto average = averages.find(name);
      weights.push_back({name, parameters.values(parameters.entry(name)),
                         average == averages.end() ? std::span<float>() : average->second});
    }
  prune_smallest(weights, zeros_after(pruning, step, steps), pruning.global);
}

Stepper& TrainerState::stepper_for(const data::SampleLayout& layout) {
  const TensorType target = target_type(layout);
  if (stepper_target != target) drop_stepper();
  if (!stepper) {
    stepper = std::make_unique<Stepper>(
        model, sample, target, loss, options.optimizer, parameters, choices,
        StepperOptions{.threads = threads,
                       .lanes = lanes,
                       .shards = shards,
                       .seed = options.seed,
                       .memory_limit = options.memory_limit,
                       .check_numbers = options.check_numbers,
                       .check_memory = options.check_memory,
                       .trained = [this](const std::string& name) { return trained(name); },
                       .metrics = metrics_for(layout),
                       .keep_zeros = kept_zeros()});
    stepper_target = target;
    stepper_generation = -1;
  }
  if (stepper_generation != cluster.membership().generation) {
    stepper->set_sum_memory([membership = cluster.membership()](size_t bytes) {
      return allocate_sums(membership, bytes);
    });
    stepper_generation = cluster.membership().generation;
  }
  return *stepper;
}

void TrainerState::drop_stepper() {
  if (stepper && pending_optimizer.empty()) pending_optimizer = stepper->update().state();
  stepper.reset();
}

checkpoint::Snapshot TrainerState::snapshot() const {
  const StrategyStates strategies = strategy_states();
  checkpoint::Snapshot result = {
      .step = step,
      .weights = parameters.sources(),
      .optimizer = stepper ? stepper->update().sources() : sources_of(pending_optimizer),
      .state = state_text(strategies)};
  for (TensorSource& tensor : sources_of(to_tensors(strategies)))
    result.optimizer.push_back(std::move(tensor));
  return result;
}

checkpoint::Checkpoint TrainerState::checkpoint() const {
  const checkpoint::Snapshot now = snapshot();
  return {now.step, tensors_of(now.weights), tensors_of(now.optimizer), now.state};
}

StrategyStates TrainerState::strategy_states() const {
  if (!strategy) return kept;
  // A worker's own tensors are outdated when another strategy is in use.
  StrategyStates all = kept;
  for (auto& [owner, state] : all) drop_tensors_of_workers(state);
  StrategyState own = strategy->state();
  if (own.values.empty() && own.tensors.empty())
    all.erase(strategy->state_name());
  else
    all[strategy->state_name()] = std::move(own);
  return all;
}

void TrainerState::set_strategy(Strategy* next) {
  kept = strategy_states();
  strategy = next;
  if (!next) return;
  if (const auto own = kept.find(next->state_name()); own != kept.end())
    own->second.tensors.clear();
}

std::string TrainerState::state_text(const StrategyStates& strategies) const {
  const GradientNoise& noise = epoch.noise;
  return Json({{"step", step},
               {"extra_updates", extra_updates},
               {"numerics", kNumericsVersion},
               {"lanes", lanes},
               {"lanes_asked", options.lanes},
               {"shards", shards},
               {"seed", options.seed},
               {"loader", {{"epoch", position.epoch}, {"position", position.position}}},
               {"plateau",
                {{"started", plateau.started},
                 {"best", plateau.best},
                 {"bad_epochs", plateau.bad_epochs},
                 {"cooldown_left", plateau.cooldown_left},
                 {"factor", plateau.factor}}},
               {"epoch",
                {{"loss", epoch.loss},
                 {"samples", epoch.samples},
                 {"weight", epoch.weight},
                 {"metrics", epoch.metrics},
                 {"counted", counted},
                 {"noise", {noise.variance, noise.square}}}},
               {"best", best_json(best)},
               {"bad_epochs", bad_epochs},
               {"strategies", to_json(strategies)},
               {"plan", to_string(choices)}})
      .dump();
}

// Averages of weights that were not averaged before, or frozen, start at the current weights.
void TrainerState::add_missing_averages(checkpoint::Checkpoint& saved) const {
  if (options.optimizer.average == 0) return;
  std::set<std::string> there;
  for (const NamedTensor& tensor : saved.optimizer) there.insert(tensor.name);
  for (const NamedTensor& weight : saved.weights) {
    std::string name = fmt::format("{}/{}", optim::kAverageSlot, weight.name);
    if (parameters.contains(weight.name) && !parameters.entry(weight.name).is_state &&
        trained(weight.name) && !there.contains(name))
      saved.optimizer.push_back({std::move(name), weight.tensor});
  }
}

void TrainerState::restore(checkpoint::Checkpoint saved) {
  add_missing_averages(saved);
  load_weights(std::exchange(saved.weights, {}));
  in_step = in_parts = false;
  restore_state(saved.state);
  for (auto& [owner, state] : kept) state.tensors.clear();
  stepper.reset();
  pending_optimizer.clear();
  for (NamedTensor& tensor : saved.optimizer)
    if (!read_tensor(tensor, kept)) pending_optimizer.push_back(std::move(tensor));
}

void TrainerState::restore_state(const std::string& text) {
  try {
    const Json state = parse_json(text, "checkpoint");
    // 0 if the run had not started.
    const int saved_lanes = whole_number(state, "lanes", 0, kMostLanes), lanes_before = lanes;
    const std::string choices_before = to_string(choices);
    const int saved_request =
        state.value("lanes_asked", 0);  // below saved_lanes if the run raised its lanes
    require(options.lanes == 0 || saved_lanes == 0 || options.lanes == saved_lanes ||
                options.lanes == saved_request,
            ErrorKind::invalid_argument,
            "cluster.lanes: got {}, but the run has {}; a different number changes the "
            "result; leave the key out",
            options.lanes, saved_lanes);
    lanes = saved_lanes;
    if (const int saved_numerics = numerics_in(state);
        saved_numerics != kNumericsVersion && cluster.rank() == 0)
      log(LogLevel::warning,
          "the checkpoint was computed with numerics {}, this version has numerics {}: the run "
          "continues, but may not get the bits of an uninterrupted one (see the changelog)",
          saved_numerics, kNumericsVersion);
    const int saved_shards = state.value("shards", 1);
    require(shards == saved_shards, ErrorKind::invalid_argument,
            "cluster.shards: got {}, but the run has {}; another number would give the result "
            "other bits; try cluster.shards = {}",
            shards, saved_shards, saved_shards);
    step = whole_number<int64_t>(state, "step", 0);
    // Earlier versions did not count them.
    extra_updates =
        state.contains("extra_updates") ? whole_number<int64_t>(state, "extra_updates", -step) : 0;
    const Json& loader = state.at("loader");
    position = {whole_number<int64_t>(loader, "epoch", 0),
                whole_number<int64_t>(loader, "position", 0)};
    const Json& p = state.at("plateau");
    plateau = {p.at("started"), number_in(p.at("best")), p.at("bad_epochs"), p.at("cooldown_left"),
               p.at("factor")};
    const Json& e = state.at("epoch");
    epoch = {number_in(e.at("loss")), e.at("samples")};
    // In earlier versions all samples counted 1.
    epoch.weight = e.value("weight", static_cast<double>(epoch.samples));
    // Earlier versions stored the accuracy as two separate numbers.
    epoch.metrics.clear();
    for (const Json& sum :
         e.contains("metrics") ? e["metrics"] : Json{e.at("correct"), e.at("labels")})
      epoch.metrics.push_back(number_in(sum));
    counted = e.value("counted", std::vector<std::string>());
    epoch.noise = {};
    if (e.contains("noise"))
      epoch.noise = {number_in(e["noise"].at(0)), number_in(e["noise"].at(1))};
    best = best_in(state);
    bad_epochs = state.at("bad_epochs");
    read_values(state, kept);
    const bool tune = choices.tune;
    Device* const device = choices.device;
    choices = parse_choices(state.at("plan").get<std::string>());
    choices.tune = tune;
    choices.device = device;
    if (lanes != lanes_before || to_string(choices) != choices_before) {
      drop_stepper();
      predictor.reset();
    }
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[checkpoint] the state of the run is not readable: {}", error.what());
  }
}

std::optional<int> lanes_in_state(const std::string& state) {
  const Json json = json_or_null(state);
  if (!json.is_object() || !json.contains("lanes")) return {};
  const int lanes = whole_number(json, "lanes", 0, kMostLanes);
  return lanes > 0 ? std::optional(lanes) : std::nullopt;
}

std::optional<int> numerics_in_state(const std::string& state) {
  const Json json = json_or_null(state);
  if (!json.is_object()) return {};
  return numerics_in(json);
}

}  // namespace artel
