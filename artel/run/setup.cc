#include "artel/run/setup.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/with_where.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/checkpoint/weights.h"
#include "artel/data/fetch.h"
#include "artel/data/sets.h"
#include "artel/data/text/tokenizer.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/zoo/names.h"
#include "artel/run/fetch.h"
#include "artel/run/published_config.h"
#include "artel/train/name_prefixes.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

bool in_catalogue(const std::string& name) {
  for (const data::CatalogueEntry& entry : data::catalogue())
    if (entry.name == name) return true;
  return false;
}

data::Task task_by_name(const std::string& name) {
  static const std::map<std::string, data::Task> tasks = {{"automatic", data::Task::automatic},
                                                          {"classes", data::Task::classes},
                                                          {"values", data::Task::values}};
  const auto found = tasks.find(name);
  return found == tasks.end() ? data::Task::automatic : found->second;
}

// Throws unless the model learns what the data teaches. Models of one's own may do as they like.
void check_task(const RunConfig& config, const data::SampleLayout& layout) {
  const std::string& name = config.model.name;
  const bool masked = config.data.task == "masked";
  require(!masked || layout.tokenizer, ErrorKind::invalid_argument,
          "data.task: got \"masked\" for the set '{}', expected a text", config.data.set);
  if (name.empty() || !layout.tokenizer) return;
  const auto check = [&](bool fits, const char* what, const char* expected) {
    require(fits, ErrorKind::invalid_argument, "model.name: got \"{}\" for {}, expected {}", name,
            what, expected);
  };
  if (layout.target.rank() == 0)
    check(name == "bert_classifier" || name == "bert_next_sentence", "texts with a class each",
          "\"bert_classifier\" or \"bert_next_sentence\"");
  else if (masked)
    check(name == "bert_pretraining" || name == "bert_masked", "masked tokens",
          "\"bert_pretraining\" or \"bert_masked\"");
  else
    check(name.starts_with("gpt2"), "the next tokens of a text",
          "\"gpt2\"; for a network of the BERT family try data.task = \"masked\"");
}

}  // namespace

RunData open_data(const RunConfig& config) {
  const DataConfig& data = config.data;
  require(!data.set.empty(), ErrorKind::invalid_argument,
          "data.set: not given, expected one of {}; try data.set = \"fashion_mnist\"",
          join(data::set_names(), ", "));
  const auto seed = static_cast<uint64_t>(config.train.seed);
  if (data.path.empty() && in_catalogue(data.set)) fetch_set(data.set);
  RunData result{.split = data::open_set(
                     data.set, {.path = data.path,
                                .test_path = data.test_path,
                                .test_fraction = data.test_fraction,
                                .seed = seed,
                                .table = {.target = data.target, .task = task_by_name(data.task)},
                                .image_size = data.image_size,
                                .context = data.context,
                                .stride = data.stride,
                                .tokenizer = data.tokenizer,
                                .masked = data.task == "masked"}),
                 .augment = data::Augmentation::parse(data.augment)};
  check_task(config, result.layout());
  if (data.task == "reconstruct") {
    require(data.augment.empty(), ErrorKind::invalid_argument,
            "data.augment: got {} steps with data.task = \"reconstruct\", expected none, because "
            "the target would not follow them",
            data.augment.size());
    result.split = {data::reconstruction(result.split.train),
                    data::reconstruction(result.split.test)};
  }
  if (data.validation > 0) result.split = data::split(result.split.train, data.validation, seed);
  return result;
}

TensorType sample_type(const data::SampleLayout& layout, const data::Augmentation& augment) {
  return {layout.input_type,
          augment.steps.empty() ? layout.input : augment.output_shape(layout.input)};
}

std::string class_name(const data::SampleLayout& layout, int64_t index) {
  return static_cast<size_t>(index) < layout.class_names.size() ? layout.class_names[index]
                                                                : std::to_string(index);
}

nn::ModelOptions model_options(const ModelConfig& config, int64_t classes) {
  return {.classes = config.classes > 0 ? config.classes : classes,
          .small_images = config.small_images,
          .width = config.width,
          .depth = config.depth,
          .heads = config.heads,
          .positions = config.positions,
          .vocabulary = config.vocabulary,
          .patch = config.patch,
          .hidden = config.hidden,
          .activation = config.activation,
          .epsilon = config.epsilon,
          .untied_head = config.untied_head,
          .dropout = config.dropout};
}

Model make_model(const ModelConfig& config, int64_t classes) {
  require(config.name.empty() != config.layers.empty(), ErrorKind::invalid_argument,
          "model: got {}, expected one of model.name and model.layers",
          config.name.empty() ? "neither name nor layers" : "both name and layers");
  if (!config.layers.empty()) return nn::parse_layers(config.layers);
  return nn::model_by_name(config.name, model_options(config, classes));
}

Model make_model(ModelConfig config, const data::SampleLayout& layout) {
  if (layout.tokenizer) {
    const int64_t tokens = layout.tokenizer->size();
    require(config.vocabulary == 0 || config.vocabulary >= tokens, ErrorKind::invalid_argument,
            "model.vocabulary: got {}, but the tokenizer has {} tokens; leave it out",
            config.vocabulary, tokens);
    if (config.vocabulary == 0) config.vocabulary = tokens;
  }
  require(config.classes == 0 || config.classes >= layout.classes, ErrorKind::invalid_argument,
          "model.classes: got {}, but the data has {}; leave it out", config.classes,
          layout.classes);
  return make_model(config, layout.classes);
}

namespace {

// Servers without a strategy mean the plain one.
std::string strategy_of(const ClusterConfig& cluster) {
  return cluster.servers > 0 && cluster.strategy == "auto" ? "ps" : cluster.strategy;
}

bool uses_servers(const std::string& strategy) {
  return strategy == "ps" || strategy == "downpour" || strategy == "ddpg";
}

}  // namespace

int server_count(const RunConfig& config) {
  const std::string strategy = strategy_of(config.cluster);
  require(config.cluster.servers == 0 || uses_servers(strategy), ErrorKind::invalid_argument,
          "cluster.servers: got {} with the strategy \"{}\", expected \"ps\", \"downpour\" or "
          "\"ddpg\"",
          config.cluster.servers, strategy);
  return uses_servers(strategy) ? std::max(1, static_cast<int>(config.cluster.servers)) : 0;
}

bool outlives_workers(const RunConfig& config) {
  return server_count(config) > 0 &&
         (config.cluster.delay != 0 || config.cluster.strategy == "downpour");
}

TrainerOptions trainer_options(const RunConfig& config) {
  const TrainConfig& train = config.train;
  optim::OptimizerConfig optimizer = optim::optimizer_from_options(train.optimizer);
  if (train.clip_norm > 0) optimizer.clip_norm = train.clip_norm;
  return {.optimizer = optimizer,
          .schedule = optim::schedule_from_options(train.schedule),
          .loss = train.loss,
          .label_smoothing = train.label_smoothing,
          .seed = static_cast<uint64_t>(train.seed),
          .threads = static_cast<int>(config.cluster.threads),
          .lanes = static_cast<int>(config.cluster.lanes),
          .tune = train.tune,
          .exact_convolutions = train.exact_convolutions,
          .precision = train.precision,
          .memory_limit = static_cast<size_t>(train.memory_limit.bytes),
          .check_numbers = train.check_numbers,
          .check_memory = train.check_memory,
          .freeze = train.freeze,
          .strategy = strategy_of(config.cluster),
          .reduction = config.cluster.reduction,
          .compress = config.cluster.compress,
          .coordinators = static_cast<int>(config.cluster.coordinators),
          .local_steps = config.cluster.local_steps,
          .outer_momentum = config.cluster.outer_momentum,
          .outer_learning_rate = config.cluster.outer_lr,
          .delay = config.cluster.delay,
          .push_every = config.cluster.push_every,
          .fetch_every = config.cluster.fetch_every,
          .synchronous_epochs = config.cluster.synchronous_epochs,
          .allow_lossy = config.cluster.allow_lossy};
}

namespace {

fs::path published_weights(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"})
    if (fs::exists(folder / name)) return folder / name;
  fail(ErrorKind::not_found,
       "[{}] no weights: expected model.safetensors or pytorch_model.bin, whole or in pieces with "
       "an .index.json",
       folder.string());
}

// Throws if a file has a head of its own where the network takes its table of tokens.
void check_head(const ModelConfig& config, const NamedTensors& weights, const std::string& where) {
  const std::optional<nn::TokenHead> names = nn::token_head(config.name);
  if (!names || config.untied_head) return;
  const auto find = [&](const std::string& name) {
    const auto found = std::find_if(weights.begin(), weights.end(),
                                    [&](const NamedTensor& each) { return each.name == name; });
    return found == weights.end() ? nullptr : &found->tensor;
  };
  const Tensor *head = find(names->weight), *table = find(names->table);
  if (!head || !table) return;
  const bool same = head->dtype() == table->dtype() && head->shape() == table->shape() &&
                    std::memcmp(head->raw(), table->raw(), table->bytes()) == 0;
  require(same, ErrorKind::unsupported,
          "[{}] {} differs from {}, but the network has one table for both; set "
          "model.untied_head = true",
          where, names->weight, names->table);
}

void report_unused(const NamedTensors& weights, const Parameters& parameters,
                   const std::string& file) {
  std::vector<std::string> unused;
  for (const NamedTensor& each : weights)
    if (!parameters.contains(each.name)) unused.push_back(each.name);
  if (unused.empty()) return;
  const size_t count = unused.size();
  constexpr size_t kShown = 3;
  if (count > kShown) {
    unused.resize(kShown);
    unused.emplace_back("...");
  }
  log(LogLevel::info, "{}: {} of {} tensors are not in the model and left out: {}", file, count,
      weights.size(), join(unused, ", "));
}

}  // namespace

NamedTensors weights_at(const fs::path& path) {
  if (!fs::is_directory(path)) return checkpoint::load_weights(path);
  if (fs::exists(path / kPublishedConfig)) return checkpoint::load_weights(published_weights(path));
  return checkpoint::checkpoint_at(path).weights;
}

NamedTensors weights_for(const ModelConfig& config, const fs::path& path) {
  NamedTensors weights = nn::rename_published(config.name, weights_at(path));
  check_head(config, weights, path.string());
  return weights;
}

void load_configured_weights(Trainer& trainer, const ModelConfig& config) {
  if (config.weights.empty()) return;
  const fs::path published = fs::path(config.weights) / kPublishedConfig;
  if (fs::exists(published)) check_published(config, read_file(published), published.string());
  const NamedTensors weights = weights_for(config, config.weights);
  check_prefixes("model.new_layers", config.new_layers, trainer.parameters());
  with_where(config.weights, [&] {
    trainer.load_weights(weights, [&](const std::string& name) {
      return !begins_with_any(name, config.new_layers);
    });
  });
  report_unused(weights, trainer.parameters(), config.weights);
}

}  // namespace artel
