#include "artel/run/config/setup.h"

#include <algorithm>
#include <map>

#include "artel/base/error.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/data/class_balance.h"
#include "artel/data/fetch.h"
#include "artel/data/sets.h"
#include "artel/data/text/word_piece.h"
#include "artel/nn/adapters.h"
#include "artel/nn/named_values.h"
#include "artel/nn/narrowing.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/zoo/names.h"
#include "artel/optim/optimizer.h"
#include "artel/run/config/fetch.h"
#include "artel/train/name_prefixes.h"
#include "artel/train/parts/mesh_axes.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategies/shared_options.h"

namespace artel {
namespace {

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

// Throws unless the model's task matches the data. Custom models are not checked.
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
  if (layout.target.rank() == 0) {
    check(nn::classifies_texts(name), "texts, each with a class",
          "\"bert_classifier\", \"bert_next_sentence\", \"gpt2_classifier\" or "
          "\"llama_classifier\"");
    require(!name.starts_with("bert") ||
                std::dynamic_pointer_cast<const data::WordPiece>(layout.tokenizer),
            ErrorKind::invalid_argument,
            "data.tokenizer: got '{}', expected WordPiece tokens for the network \"{}\", such as "
            "\"wordpiece 8192\" or the path of a WordPiece vocabulary",
            config.data.tokenizer, name);
  } else if (masked)
    check(name == "bert_pretraining" || name == "bert_masked", "masked tokens",
          "\"bert_pretraining\" or \"bert_masked\"");
  else
    check(nn::predicts_next_tokens(name), "the next tokens of a text",
          "\"gpt2\" or \"llama\"; for a network of the BERT family try data.task = \"masked\"");
}

// "a9a", or "libsvm" with a data.path: the sets of sparse rows.
std::string sparse_sets() {
  std::vector<std::string> names;
  for (const std::string& name : data::set_names())
    if (data::is_sparse(name))
      names.push_back(fmt::format("\"{}\"{}", name, in_catalogue(name) ? "" : " with a data.path"));
  return join(names, ", or ");
}

// Throws for data that the strategy cannot use.
void fetch_data(const RunConfig& config) {
  const DataConfig& data = config.data;
  require(!data.set.empty(), ErrorKind::invalid_argument,
          "data.set: not given, expected one of {}; try data.set = \"fashion_mnist\"",
          join(data::set_names(), ", "));
  const StrategyKind& strategy = find_strategy(config.cluster.strategy);
  require(!strategy.sparse_data || data::is_sparse(data.set), ErrorKind::invalid_argument,
          "data.set: got \"{}\" with the strategy \"{}\", expected {}", data.set,
          config.cluster.strategy, sparse_sets());
  if (data.path.empty() && in_catalogue(data.set)) fetch_set(data.set);
}

}  // namespace

void prepare_data(const RunConfig& config) {
  if (find_strategy(config.cluster.strategy).sparse_data)
    fetch_data(config);
  else
    open_data(config);
}

data::TableOptions table_options(const RunConfig& config) {
  const DataConfig& data = config.data;
  // If targets may be whole numbers, the loss of a strategy for sparse data determines their kind.
  const bool values =
      find_strategy(config.cluster.strategy).sparse_data && config.train.loss == "mse";
  return {.target = data.target,
          .task = values ? data::Task::values : task_by_name(data.task),
          .ignore = data.ignore,
          .categorical = data.categorical,
          .scale_target = data.scale_target,
          .decimal_comma = data.decimal_comma};
}

RunData open_data(const RunConfig& config,
                  const std::shared_ptr<const data::TableEncoder>& learnt) {
  const DataConfig& data = config.data;
  const auto seed = static_cast<uint64_t>(config.train.seed);
  fetch_data(config);
  data::Split split = data::open_set(data.set, {.path = data.path,
                                                .test_path = data.test_path,
                                                .test_fraction = data.test_fraction,
                                                .seed = seed,
                                                .table = table_options(config),
                                                .learnt = learnt,
                                                .image_size = data.image_size,
                                                .skip_broken = data.skip_broken,
                                                .context = data.context,
                                                .stride = data.stride,
                                                .tokenizer = data.tokenizer,
                                                .lines = data.lines,
                                                .masked = data.task == "masked"});
  check_task(config, split.train->layout());
  if (data.task == "reconstruct") {
    require(
        data.augment.empty(), ErrorKind::invalid_argument,
        "data.augment: got {} transforms with data.task = \"reconstruct\", expected none, because "
        "the target would not follow them",
        data.augment.size());
    split = {data::reconstruction(split.train), data::reconstruction(split.test)};
  }
  if (data.samples > 0) split.train = data::drawn(split.train, data.samples, seed);
  RunData result{.train = split.train,
                 .validation = {},
                 .test = split.test,
                 .augment = data::Augmentation::parse(data.augment)};
  require(data.folds == 0 || data.validation == 0, ErrorKind::invalid_argument,
          "data.folds: got {} and data.validation = {}, expected one of them", data.folds,
          data.validation);
  if (data.validation > 0 || data.folds > 0) {
    const data::Split parts = data.folds > 0
                                  ? data::split_fold(split.train, data.folds, data.fold, seed)
                                  : data::split(split.train, data.validation, seed);
    result.train = parts.train;
    result.validation = parts.test;
  }
  if (data.balanced) result.train = data::balanced(result.train, seed);
  return result;
}

std::string_view to_string(Part part) {
  switch (part) {
    case Part::train:
      return "train";
    case Part::validation:
      return "validation";
    case Part::test:
      return "test";
  }
  return "";
}

const data::DatasetPtr& RunData::at(Part part) const {
  const data::DatasetPtr& set = part == Part::train        ? train
                                : part == Part::validation ? validation
                                                           : test;
  require(set && set->size() > 0, ErrorKind::not_found,
          "the data has no {} part{}; try another one", to_string(part),
          part == Part::validation ? ", because data.validation is 0" : "");
  return set;
}

std::string sizes_of(const RunData& data) {
  const std::string training = format_count(data.train->size()) + " training";
  const std::string test = counted(data.test->size(), "test sample");
  return data.validation ? fmt::format("{}, {} validation and {}", training,
                                       format_count(data.validation->size()), test)
                         : fmt::format("{} and {}", training, test);
}

TensorType sample_type(const data::SampleLayout& layout, const data::Augmentation& augment) {
  return {layout.input_type,
          augment.transforms.empty() ? layout.input : augment.output_shape(layout.input)};
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
          .key_heads = config.key_heads,
          .positions = config.positions,
          .vocabulary = config.vocabulary,
          .patch = config.patch,
          .hidden = config.hidden,
          .activation = config.activation,
          .epsilon = config.epsilon,
          .rotary_base = config.rotary_base,
          .untied_head = config.untied_head,
          .dropout = config.dropout};
}

Model make_model(const ModelConfig& config, int64_t classes) {
  require(config.name.empty() != config.layers.empty(), ErrorKind::invalid_argument,
          "model: got {}, expected one of model.name and model.layers",
          config.name.empty() ? "neither name nor layers" : "both name and layers");
  const Model model = config.layers.empty()
                          ? nn::model_by_name(config.name, model_options(config, classes))
                          : Model(nn::parse_layers(config.layers));
  return config.units.empty() ? model
                              : nn::with_units(nn::parse_units(config.units), model.network());
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
  Model model = make_model(config, layout.classes);
  if (!config.adapters.empty())
    model = nn::with_adapters(model, nn::parse_adapters(config.adapters));
  if (layout.parts.empty()) return model;
  std::vector<std::pair<std::string, Shape>> inputs;
  for (const data::InputPart& part : layout.parts) inputs.emplace_back(part.name, part.shape);
  return nn::split_inputs(std::move(inputs), model.network());
}

namespace {

const StrategyKind& strategy_of(const ClusterConfig& cluster) {
  return find_strategy(cluster.strategy, static_cast<int>(cluster.servers));
}

}  // namespace

int server_count(const RunConfig& config) {
  if (!strategy_of(config.cluster).needs_servers) return 0;
  return std::max(1, static_cast<int>(config.cluster.servers));
}

bool outlives_workers(const RunConfig& config) {
  const StrategyKind& kind = strategy_of(config.cluster);
  return !is_elastic(config) && kind.outlives_workers &&
         kind.outlives_workers(config.cluster.strategy_options);
}

bool has_mirrors(const RunConfig& config) {
  return is_elastic(config) && config.cluster.strategy_options.of<MirrorOptions>().mirror_every > 0;
}

bool is_elastic(const RunConfig& config) {
  if (!config.cluster.elastic || !strategy_of(config.cluster).elastic) return false;
  // Other workers have copies of each worker's part.
  const StrategyOptions& options = config.cluster.strategy_options;
  if (options.of<MirrorOptions>().mirror_every > 0) return true;
  return std::ranges::none_of(strategy_kinds(), [&](const StrategyKind* kind) {
    return kind->needs_all_workers && kind->needs_all_workers(options);
  });
}

namespace {

// In the unit of the values that were scaled to be learnt.
std::vector<Metric> metrics_for(const TrainConfig& train, const data::SampleLayout& layout) {
  const bool of_values =
      layout.table && layout.table->class_names().empty() && layout.target.elements() == 1;
  std::vector<std::string> names = train.metrics;
  if (names.empty() && of_values) names = {"mean absolute error"};
  std::vector<Metric> metrics = metrics_by_name(names);
  if (!of_values) return metrics;
  const double scale = layout.table->target_scale();
  for (Metric& metric : metrics)
    if (metric.has_unit)
      metric.value = [scale, value = metric.value](std::span<const double> sums) {
        return scale * value(sums);
      };
  return metrics;
}

}  // namespace

std::vector<double> class_weights(const RunConfig& config, const data::Dataset& train) {
  const auto& [balanced, numbers] = config.train.class_weights;
  if (!balanced && numbers.empty()) return {};
  const data::SampleLayout& layout = train.layout();
  require(layout.target_kind == data::TargetKind::classes, ErrorKind::invalid_argument,
          "train.class_weights: given for targets without classes; leave it out");
  if (balanced) return data::balanced_weights(data::class_counts(train));
  require(static_cast<int64_t>(numbers.size()) == layout.classes, ErrorKind::invalid_argument,
          "train.class_weights: got {} numbers, expected one for each of the {} classes",
          numbers.size(), layout.classes);
  return numbers;
}

LaneRequest lane_request(const RunConfig& config, const Model& model, const TensorType& sample,
                         int workers) {
  const auto trained = [&](const std::string& name) {
    return !begins_with_any(name, config.train.freeze);
  };
  return {.asked = static_cast<int>(config.cluster.lanes),
          .batch = config.train.batch_size.of(workers),
          .batch_norm = uses_batch_statistics(model, sample, trained),
          .workers = workers,
          .sharing = mesh_size(config.cluster.strategy_options).workers()};
}

TrainerOptions trainer_options(const RunConfig& config, const data::SampleLayout& layout) {
  const TrainConfig& train = config.train;
  optim::OptimizerConfig optimizer = optim::optimizer_from_options(train.optimizer);
  if (train.clip_norm > 0) optimizer.clip_norm = train.clip_norm;
  return {.optimizer = optimizer,
          .schedule = optim::schedule_from_options(train.schedule),
          .loss = train.loss,
          .metrics = metrics_for(train, layout),
          .label_smoothing = train.label_smoothing,
          .seed = static_cast<uint64_t>(train.seed),
          .threads = static_cast<int>(config.cluster.threads),
          .device = config.cluster.device,
          .device_timeout = config.cluster.device_timeout,
          .lanes = static_cast<int>(config.cluster.lanes),
          .tune = train.tune,
          .exact_convolutions = train.exact_convolutions,
          .precision = train.precision,
          .memory_limit = static_cast<size_t>(train.memory_limit.bytes),
          .worker_memory = static_cast<size_t>(config.cluster.memory.bytes),
          .bucket_bytes = static_cast<size_t>(config.cluster.bucket_size.bytes),
          .check_numbers = train.check_numbers,
          .check_memory = train.check_memory,
          .freeze = train.freeze,
          .strategy = config.cluster.strategy,
          .strategy_options = config.cluster.strategy_options,
          .pruning = {.keep_zeros = config.prune.keep_zeros,
                      .weights = config.prune.weights,
                      .global = config.prune.scope == "global",
                      .begin = config.prune.begin,
                      .end = config.prune.end,
                      .every = config.prune.every}};
}

}  // namespace artel
