// Random networks: layers are proposed and kept if they can be built.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "artel/base/error.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/split_layers.h"
#include "artel/predict/batches.h"
#include "artel/train/step/stepper.h"
#include "tests/model_fuzz/network_case.h"
#include "tests/model_fuzz/random_layers.h"
#include "tests/model_fuzz/weighted_losses.h"

namespace artel::model_fuzz {
namespace {

// One in this many cases is large.
constexpr uint64_t kLargeOneIn = 50;

int64_t size(Random& random, int64_t most) { return random_size(random, most); }

Shape random_sample(Random& random) {
  switch (random.below(6)) {
    case 0:
      return {size(random, 65)};
    case 1:
      return {size(random, 17), size(random, 33)};
    case 2:
      return {size(random, 3), size(random, 5), size(random, 5), size(random, 7)};
    case 3:
      return {between(random, 15, 33), between(random, 3, 9), between(random, 3, 9)};
    default:
      return {size(random, 17), size(random, 17), size(random, 17)};
  }
}

// The samples of all lanes that have any, in all steps.
std::set<int64_t> lane_sizes(const NetworkCase& network) {
  std::set<int64_t> sizes;
  for (const int64_t batch : {network.batch, network.last_batch})
    for (int lane = 0; lane < network.lanes; ++lane) {
      const auto [begin, end] = Stepper::rows_of_lane(batch, static_cast<int>(network.lanes), lane);
      if (end > begin) sizes.insert(end - begin);
    }
  return sizes;
}

// True if something can be done without an error that is not a bug.
template <typename Try>
bool works(const Try& attempt) {
  try {
    return attempt();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return false;
  }
}

// The shape of one sample after the layers, or nothing if they cannot be built and trained with the
// lanes of this case.
std::optional<Shape> output_shape(const NetworkCase& network, const Budget& budget) {
  std::optional<Shape> result;
  const bool good = works([&] {
    if (!is_within(budget, network)) return false;
    const Loss average = [](Value prediction, Value) { return mean(prediction); };
    // A lane of few samples is what layers may refuse.
    training_graph(network.model(), batch_of(network.x(), *lane_sizes(network).begin()), {},
                   average);
    const ModelGraph graph = inference_graph(network.model(), batch_of(network.x(), 2));
    const Shape shape = graph.graph.type(graph.graph.output_id("prediction")).shape;
    if (shape.rank() < 1 || shape[0] != 2) return false;
    result = Shape(std::vector<int64_t>(shape.extents().begin() + 1, shape.extents().end()));
    return true;
  });
  return good ? result : std::nullopt;
}

// True if the case can be trained with its loss, metrics and frozen parameters.
bool can_be_trained(const NetworkCase& network) {
  return works([&] {
    for (const int64_t samples : lane_sizes(network))
      training_graph(
          network.model(), batch_of(network.x(), samples), batch_of(network.y(), samples),
          network.training_loss(), [&](const std::string& name) { return network.trained(name); },
          metrics_by_name(network.metrics), ShardPart::all(static_cast<int>(network.mesh.shards)));
    return true;
  });
}

optim::Options random_optimizer(Random& random) {
  static const std::vector<std::string> names = {
      "sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "lars", "lamb"};
  optim::Options options = {{"name", pick(random, names)}};
  const std::string name = options["name"];
  const auto maybe = [&](const char* key, const std::vector<std::string>& values) {
    if (one_in(random, 3)) options[key] = pick(random, values);
  };
  options["lr"] = fmt::format("{}", pick<double>(random, {0.001, 0.01, 0.1}));
  maybe("weight_decay", {"0", "0.001", "0.05", "0.5"});
  if (one_in(random, 4)) options["clip_norm"] = pick<std::string>(random, {"0.01", "0.5", "5"});
  if (one_in(random, 6)) options["clip_value"] = "0.1";
  if (one_in(random, 6)) options["decay_bias_and_norm"] = "true";
  const bool moments = name == "adam" || name == "adamw" || name == "lamb";
  if (moments) {
    maybe("beta1", {"0", "0.5", "0.95"});
    maybe("beta2", {"0.5", "0.9", "0.99"});
  }
  if (moments || name == "adagrad" || name == "rmsprop" || name == "lars")
    maybe("epsilon", {"1e-6", "0.001", "0.1"});
  if (name == "sgd" || name == "momentum" || name == "rmsprop" || name == "lars")
    maybe("momentum", {"0.5", "0.95"});
  if (name == "momentum") maybe("dampening", {"0.1", "0.9"});
  if (name == "rmsprop") {
    maybe("centered", {"true"});
    maybe("smoothing", {"0.5", "0.9"});
  }
  if (name == "lars") maybe("trust", {"0.01", "1"});
  return options;
}

void add_data(NetworkCase& network, Random& random) {
  network.samples = {random_sample(random)};
  if (one_in(random, 6)) {
    network.tokens = between(random, 1, 40);
    network.samples = {one_in(random, 2) ? Shape{size(random, 9)}
                                         : Shape{size(random, 5), size(random, 9)}};
    const bool bag = network.samples[0].rank() == 1 && one_in(random, 3);
    if (!one_in(random, 4))  // else the tokens are numbers
      network.layers.push_back(fmt::format("embedding{} {} {}{}{}", bag ? "_bag" : "",
                                           network.tokens, size(random, 17),
                                           bag && one_in(random, 2) ? " sum" : "",
                                           bag && one_in(random, 2) ? " ignore_padding" : ""));
  }
  if (one_in(random, 8))
    for (int64_t more = between(random, 1, 2); more > 0; --more) {
      const Shape small = {size(random, 9)};
      network.samples.push_back(one_in(random, 2)     ? network.samples[0]
                                : one_in(random, 2)   ? small
                                : network.tokens == 0 ? random_sample(random)
                                                      : Shape{size(random, 3), size(random, 5)});
    }
}

// Enough for threads to share element-wise work, copies and sums, or products.
void make_large(NetworkCase& network, Random& random) {
  static const std::vector<std::pair<int64_t, Shape>> samples = {
      {1, {64, 64, 64}}, {16, {16, 33, 31}}, {2, {257, 510}},   {4, {65536}},
      {64, {65, 63}},    {1, {3, 257, 255}}, {256, {17, 5, 9}}, {4, {128, 16, 17}},
      {8, {32, 20, 20}}, {32, {512}},        {512, {65}},       {2, {2, 31, 65, 63}}};
  const auto& [batch, sample] = pick(random, samples);
  network.batch = batch;
  network.samples = {sample};
  network.tokens = 0;
  network.last_batch = 0;
  network.steps = 1;
  network.lanes = network.workers = 1;
  network.threads = between(random, 2, 3);
  network.limit_memory = one_in(random, 8);
  network.tune = false;
}

// True if threads share work in it.
bool is_large(const NetworkCase& network) {
  return !is_within({.elements = 1 << 17, .flops = 3e6}, network);
}

void add_layers(NetworkCase& network, Random& random, const Budget& budget) {
  std::optional<Shape> shape =
      network.layers.empty() ? network.samples[0] : output_shape(network, budget);
  if (!shape) return network.layers.clear();
  LayerMaker maker(random, network.samples, network.tokens);
  const auto add = [&](const std::vector<std::string>& layers) {
    const std::vector<std::string> before = network.layers;
    network.layers.insert(network.layers.end(), layers.begin(), layers.end());
    if (const std::optional<Shape> next = output_shape(network, budget))
      shape = next;
    else
      network.layers = before;
  };
  const int64_t wanted = between(random, 1, budget.elements > kSmall.elements ? 3 : 7);
  for (int tries = 0; tries < 40 && std::ssize(network.layers) < wanted; ++tries)
    add(maker.propose(*shape));
  if (!network.layers.empty() && one_in(random, 2))
    add({"flatten", fmt::format("dense {}", one_in(random, 4) ? 2 : size(random, 17))});
}

// A network that continues lines of text.
void make_lines(NetworkCase& network, Random& random, const Budget& budget) {
  network.lines = true;
  network.tokens = between(random, 2, 20);
  network.samples = {{between(random, 2, 12)}};
  network.layers = {fmt::format("embedding {} {}", network.tokens, size(random, 17))};
  const int64_t context = network.samples[0][0];
  const auto wanted = static_cast<size_t>(between(random, 1, 4));
  LayerMaker maker(random, network.samples, network.tokens);
  std::optional<Shape> shape = output_shape(network, budget);
  for (int tries = 0; shape && tries < 20 && network.layers.size() < wanted; ++tries) {
    NetworkCase longer = network;
    for (const std::string& layer : maker.propose(*shape)) longer.layers.push_back(layer);
    const std::optional<Shape> next = output_shape(longer, budget);
    if (!next || next->rank() != 2 || (*next)[0] != context) continue;
    network = longer;
    shape = next;
  }
  network.layers.push_back(fmt::format("dense {}", network.tokens));
  if (output_shape(network, budget) != Shape{context, network.tokens}) network.layers.clear();
}

void add_target(NetworkCase& network, Random& random) {
  static const std::vector<std::string> losses = {
      "mse", "mse",           "l1",           "smooth_l1", "binary_cross_entropy",
      "kl",  "cross_entropy", "cross_entropy"};
  const Shape output = network.y().shape;
  network.loss = network.lines ? "cross_entropy" : output.rank() > 0 ? pick(random, losses) : "mse";
  if (output.rank() == 1 && !network.lines && one_in(random, 8))
    network.loss = pick<std::string>(random, {"weighted_mse", "weighted_cross_entropy"});
  network.flat_target = network.loss != "cross_entropy" && output == Shape{1} && one_in(random, 2);
  if (network.loss == "cross_entropy") {
    if (one_in(random, 4)) network.label_smoothing = 0.1;
    network.shares = !network.lines && one_in(random, 4);
    network.ignored = !network.lines && !network.shares && one_in(random, 3);
    if (!network.shares && one_in(random, 4))
      for (int64_t i = 0; i < output.back(); ++i)
        network.class_weights.push_back(pick<double>(random, {0.25, 1, 3}));
  }
  const bool is_distance =
      network.loss == "mse" || network.loss == "l1" || network.loss == "smooth_l1";
  if (is_distance && one_in(random, 5)) network.target_mean = pick<double>(random, {100, 10000});
  // A confusion matrix of many classes is enormous.
  if (!one_in(random, 3) || !is_within(kSmall, network) || is_weighted(network.loss)) return;
  const std::vector<std::string> known = metric_names();
  std::set<std::string> metrics;
  for (int64_t n = between(random, 1, 3); n > 0; --n) metrics.insert(pick(random, known));
  for (const std::string& metric : metrics) {
    network.metrics.push_back(metric);
    if (!can_be_trained(network)) network.metrics.pop_back();
  }
}

// Some parameters, but not all.
void freeze_some(NetworkCase& network, Random& random) {
  const ModelGraph graph = inference_graph(network.model(), batch_of(network.x(), 1));
  std::vector<std::string> names;
  for (const ValueId id : graph.graph.of_kind(ValueKind::parameter))
    names.push_back(graph.graph.value(id).name);
  if (names.size() < 2) return;
  const std::string& name = pick(random, names);
  network.freeze = {one_in(random, 2) ? name : name.substr(0, name.find('.') + 1)};
  if (std::ranges::none_of(names, [&](const std::string& each) { return network.trained(each); }))
    network.freeze.clear();
}

// Layers that are wide enough to be cut into the shards of the case.
void add_wide_layers(NetworkCase& network, Random& random, const Budget& budget) {
  const int64_t least = kLeastColumns * network.mesh.shards;
  const auto wide = [&] { return least + between(random, 0, 9); };
  const Shape& sample = network.samples[0];
  const bool image = network.tokens == 0 && network.samples.size() == 1 && sample.rank() == 3;
  NetworkCase wider = network;
  if (image && one_in(random, 2)) {
    wider.layers.insert(wider.layers.begin(),
                        {fmt::format("conv {} 3 padding 1", wide()),
                         pick<std::string>(random, {"relu", "batch_norm", "gelu"})});
  } else {
    wider.layers.push_back("flatten");
    for (int64_t n = between(random, 1, 3); n > 0; --n) {
      wider.layers.push_back(fmt::format("dense {}", wide()));
      wider.layers.push_back(pick<std::string>(random, {"relu", "tanh", "gelu", "dropout 0.2"}));
    }
    wider.layers.push_back(fmt::format("dense {}", one_in(random, 2) ? wide() : 3));
  }
  if (output_shape(wider, budget)) network = wider;
}

// True if there is an op for each stage of the case's pipeline.
bool has_stages(const NetworkCase& network) {
  const int64_t samples = *lane_sizes(network).begin();
  const ModelGraph graph = training_graph(network.model(), batch_of(network.x(), samples),
                                          batch_of(network.y(), samples), network.training_loss());
  return graph.graph.forward_end() >= network.mesh.stages();
}

// Servers take ignored labels only where a sample has several.
bool servers_refuse(const NetworkCase& network) {
  return network.mesh.servers > 0 && network.ignored && network.class_weights.empty() &&
         network.y().shape.rank() == 0;
}

// Lanes and batches, and the network's budget for them.
Budget add_batches(NetworkCase& network, Random& random) {
  if (one_in(random, 6)) {  // as many samples as real lanes have
    network.lanes = std::max(network.workers, one_in(random, 2) ? 8 : between(random, 4, 8));
    network.batch = network.lanes * between(random, 8, 40);
  } else {
    network.lanes = network.workers + between(random, 0, 3);
    network.batch = network.lanes + between(random, 0, 2 * network.lanes);
  }
  if (one_in(random, 3)) network.last_batch = between(random, 1, network.batch - 1);
  network.steps = between(random, 1, 2);
  return network.batch < 8 * 4 ? kSmall : Budget{1 << 15, 8e6};
}

}  // namespace

NetworkCase random_mesh_case(Random& random) {
  for (;;) {
    NetworkCase network;
    network.seed = random.next_u32();
    network.workers = pick<int64_t>(random, {2, 2, 2, 2, 3, 3, 4, 4, 4, 6, 8});
    network.mesh = random_mesh(random, network.workers);
    const Budget budget = add_batches(network, random);
    if (one_in(random, 3)) network.threads = between(random, 2, 3);
    network.limit_memory = one_in(random, 2);
    network.exact_convolutions = one_in(random, 3);
    network.optimizer = random_optimizer(random);
    if (network.mesh.is_exact() && one_in(random, 3))
      network.resumed_workers =
          network.mesh.workers_of_a_copy() * between(random, 1, network.workers > 4 ? 2 : 4);
    if (network.mesh.servers > 0)
      network.resumed_workers = std::min(network.resumed_workers, network.lanes);
    // A run that is resumed gets more steps, which changes schedules that know their end.
    if (one_in(random, 3) && network.mesh.is_exact() && network.resumed_workers == 0)
      network.schedule =
          pick<std::string>(random, {"step", "cosine", "polynomial", "one_cycle", "plateau"});
    if (network.mesh.shards == 1 && one_in(random, 12)) {
      make_lines(network, random, budget);
    } else {
      add_data(network, random);
      add_layers(network, random, budget);
    }
    if (network.layers.empty()) continue;
    if (network.mesh.shards > 1) add_wide_layers(network, random, budget);
    add_target(network, random);
    if (one_in(random, 5)) freeze_some(network, random);
    if (servers_refuse(network)) continue;
    if (can_be_trained(network) && has_stages(network)) return network;
  }
}

NetworkCase random_case(Random& random) {
  for (;;) {
    NetworkCase network;
    network.seed = random.next_u32();
    network.batch = between(random, 1, 9);
    network.lanes = between(random, 1, std::min<int64_t>(4, network.batch));
    if (network.batch > 1 && one_in(random, 5))
      network.last_batch = between(random, 1, network.batch - 1);
    network.threads = between(random, 1, 3);
    network.limit_memory = one_in(random, 4);
    network.tune = one_in(random, 12);
    network.exact_convolutions = one_in(random, 3);
    network.optimizer = random_optimizer(random);
    add_data(network, random);
    const bool large = one_in(random, kLargeOneIn);
    if (large) {
      network.layers.clear();
      make_large(network, random);
    }
    add_layers(network, random, large ? kLarge : kSmall);
    if (network.layers.empty() || (large && !is_large(network))) continue;
    add_target(network, random);
    if (one_in(random, 5)) freeze_some(network, random);
    if (can_be_trained(network)) return network;
  }
}

}  // namespace artel::model_fuzz
