#include "artel/train/trainer_state.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "artel/base/error.h"
#include "artel/exec/kernels/gemm_bf16.h"
#include "artel/predict/batches.h"
#include "artel/predict/load_weights.h"
#include "artel/train/name_prefixes.h"

namespace artel {
namespace {

using Json = nlohmann::json;

const std::string kOuterVelocity = "outer velocity/";

// Names of a worker's own state among the tensors of a checkpoint: "worker 3/bucket 0/sum".
constexpr std::string_view kWorker = "worker ";
constexpr size_t kMostWorkers = 1 << 16;

void add_own_state(NamedTensors& tensors, size_t worker, const OwnState& state) {
  for (const auto& [name, values] : state) {
    Tensor tensor({static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor.values<float>().begin());
    tensors.push_back({fmt::format("{}{}/{}", kWorker, worker, name), std::move(tensor)});
  }
}

void read_own_state(const NamedTensor& tensor, std::vector<OwnState>& states) {
  if (!tensor.name.starts_with(kWorker)) return;
  const char* const begin = tensor.name.data() + kWorker.size();
  const char* const end = tensor.name.data() + tensor.name.size();
  size_t worker = 0;
  const auto [slash, error] = std::from_chars(begin, end, worker);
  if (error != std::errc{} || slash == end || worker >= kMostWorkers) return;
  if (worker >= states.size()) states.resize(worker + 1);
  const std::span<const float> values = tensor.tensor.values<float>();
  states[worker][std::string(slash + 1, end)].assign(values.begin(), values.end());
}

// Gradients that other workers will read lie in shared memory from the start.
std::function<std::shared_ptr<std::byte>(size_t)> sum_memory(comm::Group* group) {
  if (!group) return {};
  return [group](size_t bytes) { return group->allocate(bytes); };
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

ExchangeOptions exchange_options(const TrainerOptions& options) {
  return {.strategy = options.strategy,
          .reduction = options.reduction,
          .compress = options.local_steps > 1 ? "" : options.compress,
          .coordinators = options.coordinators,
          .seed = options.seed};
}

TrainerState::TrainerState(Cluster& cluster, Model model, TrainerOptions given)
    : cluster(cluster), model(std::move(model)), options(std::move(given)) {
  // The rule with which DistBelief trains, unless another one is asked for.
  const auto* sgd = std::get_if<optim::Sgd>(&options.optimizer.rule);
  if (options.strategy == "downpour" && sgd && sgd->momentum == 0)
    options.optimizer.rule = optim::Adagrad{.weight_decay = sgd->weight_decay};
  loss = loss_by_name(options.loss, options.label_smoothing);
  test_loss = loss_by_name(options.loss);
  choices.tune = options.tune;
  choices.exact_convolutions = options.exact_convolutions;
  require(options.precision == "fp32" || options.precision == "bf16", ErrorKind::invalid_argument,
          "precision: got \"{}\", expected \"fp32\" or \"bf16\"", options.precision);
  choices.bf16 = options.precision == "bf16";
  require(!choices.bf16 || kernels::has_bf16(), ErrorKind::unsupported,
          "train.precision: got \"bf16\", but this processor does not multiply bf16 numbers "
          "(AVX512_BF16); try \"fp32\"");
  threads = options.threads > 0 ? options.threads : cluster.cores();
  require(options.lanes >= 0, ErrorKind::invalid_argument,
          "lanes: got {}, expected a positive number, or 0 for one a core", options.lanes);
  lanes = options.lanes > 0 ? options.lanes : threads * cluster.size();
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
  ModelGraph graph = inference_graph(model, batch_of(type, 1));
  const Program program(std::move(graph.graph), {}, choices);
  parameters = Parameters(program.parameter_entries());
  for (const ParameterEntry& entry : parameters.entries())
    parameters.set(entry.name, nn::initial_value(options.seed, entry.name, entry.shape,
                                                 graph.initialisers.at(entry.name)));
  check_prefixes("train.freeze", options.freeze, parameters);
  if (options.outer_momentum > 0) outer_velocity = Parameters(parameters.entries());
  sample = type;
  built = true;
}

Stepper& TrainerState::stepper_for(const data::SampleLayout& layout) {
  const TensorType target = target_type(layout);
  if (stepper && stepper_target == target) return *stepper;
  stepper = std::make_unique<Stepper>(
      model, sample, target, loss, options.optimizer, parameters, choices,
      StepperOptions{.threads = threads,
                     .lanes = lanes,
                     .seed = options.seed,
                     .memory_limit = options.memory_limit,
                     .check_numbers = options.check_numbers,
                     .check_memory = options.check_memory,
                     .mixtures = layout.target_kind == data::TargetKind::values &&
                                 layout.classes > 0 && layout.target == Shape{layout.classes},
                     .trained = [this](const std::string& name) { return trained(name); },
                     .allocate_sums = sum_memory(cluster.group())});
  stepper_target = target;
  if (!pending_optimizer.empty()) stepper->update().set_state(std::exchange(pending_optimizer, {}));
  return *stepper;
}

checkpoint::Checkpoint TrainerState::checkpoint() const {
  checkpoint::Checkpoint result;
  result.step = step;
  for (const ParameterEntry& entry : parameters.entries())
    result.weights.push_back({entry.name, parameters.get(entry.name)});
  if (stepper) result.optimizer = stepper->update().state();
  for (const ParameterEntry& entry : outer_velocity.entries())
    if (entry.trained)
      result.optimizer.push_back({kOuterVelocity + entry.name, outer_velocity.get(entry.name)});
  for (size_t worker = 0; worker < own_states.size(); ++worker)
    add_own_state(result.optimizer, worker, own_states[worker]);
  result.state = state_text();
  return result;
}

std::string TrainerState::state_text() const {
  return Json({{"step", step},
               {"lanes", lanes},
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
                 {"correct", epoch.correct},
                 {"labels", epoch.labels},
                 {"samples", epoch.samples}}},
               {"best_loss", best_loss},
               {"has_best", has_best},
               {"bad_epochs", bad_epochs},
               {"saving", {{"local_steps", economy.local_steps}, {"compress", economy.compress}}},
               {"own_purpose", own_purpose},
               {"plan", to_string(choices)}})
      .dump();
}

void TrainerState::restore(const checkpoint::Checkpoint& saved) {
  artel::load_weights(parameters, saved.weights);
  restore_state(saved.state);
  own_states.clear();
  stepper.reset();
  pending_optimizer = saved.optimizer;
  for (const NamedTensor& tensor : saved.optimizer) {
    if (tensor.name.starts_with(kOuterVelocity) && !outer_velocity.entries().empty())
      outer_velocity.set(tensor.name.substr(kOuterVelocity.size()), tensor.tensor);
    read_own_state(tensor, own_states);
  }
}

void TrainerState::restore_state(const std::string& text) {
  try {
    const Json state = Json::parse(text);
    const int saved_lanes = state.at("lanes");
    require(options.lanes == 0 || options.lanes == saved_lanes, ErrorKind::invalid_argument,
            "the checkpoint was made with lanes = {}, not {}; with another number the result "
            "would have other bits",
            saved_lanes, options.lanes);
    lanes = saved_lanes;
    step = state.at("step");
    position = {state.at("loader").at("epoch"), state.at("loader").at("position")};
    const Json& p = state.at("plateau");
    plateau = {p.at("started"), p.at("best"), p.at("bad_epochs"), p.at("cooldown_left"),
               p.at("factor")};
    const Json& e = state.at("epoch");
    epoch = {e.at("loss"), e.at("correct"), e.at("labels"), e.at("samples")};
    best_loss = state.at("best_loss");
    has_best = state.at("has_best");
    bad_epochs = state.at("bad_epochs");
    if (state.contains("saving"))
      economy = {state["saving"].at("local_steps"), state["saving"].at("compress")};
    own_purpose = state.value("own_purpose", "");
    const bool tune = choices.tune;
    choices = parse_choices(state.at("plan").get<std::string>());
    choices.tune = tune;
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[checkpoint] the state of the run is not readable: {}", error.what());
  }
}

}  // namespace artel
