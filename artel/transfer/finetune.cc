#include "artel/transfer/finetune.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "artel/base/error.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/data/class_balance.h"
#include "artel/data/sets.h"
#include "artel/nn/adapters.h"
#include "artel/nn/zoo/names.h"
#include "artel/run/folder/saved_run.h"
#include "artel/run/samples/frozen_layers.h"
#include "artel/train/name_prefixes.h"

namespace artel::transfer {
namespace {

// Throws unless every class has at least two samples.
void check_classes(const data::Dataset& set, const std::string& name, bool drawn) {
  const data::SampleLayout& layout = set.layout();
  if (layout.target_kind != data::TargetKind::classes || layout.target.rank() > 0) return;
  require(layout.classes > 1, ErrorKind::invalid_argument,
          "[{}] has one class{}, expected two or more to tell apart", name,
          layout.class_names.empty() ? "" : fmt::format(" ('{}')", layout.class_names[0]));
  const std::vector<int64_t> counts = data::class_counts(set);
  for (size_t i = 0; i < counts.size(); ++i)
    require(counts[i] > 1, ErrorKind::invalid_argument,
            "[{}] class '{}' has {}, expected two or more: one to learn from and one to judge by; "
            "{}",
            name, class_name(layout, static_cast<int64_t>(i)),
            counts[i] == 1 ? "a single sample" : "no samples",
            drawn ? "increase data.samples" : "add some, or leave the class out");
}

bool has_values(const data::SampleLayout& layout) {
  return layout.target_kind == data::TargetKind::values;
}

int64_t outputs_for(const data::SampleLayout& layout, const FinetuneOptions& options) {
  if (options.outputs > 0) return options.outputs;
  return has_values(layout) ? layout.target.elements() : layout.classes;
}

bool is_of_bert(const std::string& name) { return name.starts_with("bert"); }

// The text classifier of the zoo with the same layers.
std::string classifier_of(const std::string& name) {
  if (is_of_bert(name)) return "bert_classifier";
  return nn::predicts_next_tokens(name) ? name + nn::kClassifierSuffix : name;
}

// True for data that is one long text, whose next tokens a network can learn. Sets of a program's
// own, which may use any option, are not.
bool is_running_text(const std::string& set) {
  return data::uses_option(set, "stride") && !data::uses_option(set, "image_size");
}

// Gives the base's network a last layer with this many outputs.
void replace_head(const BaseNetwork& base, const data::SampleLayout& layout, int64_t outputs,
                  ModelConfig& model) {
  model.classes = model.layers.empty() && outputs != layout.classes ? outputs : 0;
  if (!model.layers.empty()) {
    const auto last =
        std::ranges::find_if(model.layers.rbegin(), model.layers.rend(),
                             [](const std::string& layer) { return layer.starts_with("dense "); });
    require(last != model.layers.rend(), ErrorKind::unsupported,
            "[{}] has no dense layer to replace by one with {}", base.name,
            counted(outputs, "output"));
    *last = fmt::format("dense {}", outputs);
  }
  if (!base.reads_text()) return;
  model.name = classifier_of(model.name);
  model.untied_head = false;
}

// Layers of a text network that the base lacks, such as the head for masked tokens.
std::vector<std::string> missing_layers(const BaseNetwork& base, const Model& network,
                                        const TensorType& sample,
                                        const std::vector<std::string>& known) {
  std::vector<std::string> missing;
  if (!base.reads_text()) return missing;
  for (const std::string& name : parameter_names(network, sample))
    if (!find_tensor(base.weights, name) && !begins_with_any(name, known)) missing.push_back(name);
  return missing;
}

std::string automatic_choice(int64_t samples, std::vector<std::string>& notes) {
  const auto [choice, why] = samples < 1000    ? std::pair("head", "few")
                             : samples < 10000 ? std::pair("last 2", "some")
                                               : std::pair("all", "many");
  notes.push_back(fmt::format("{} are {}: training \"{}\"; use --train to select other blocks",
                              counted(samples, "training sample"), why, choice));
  return choice;
}

// Drops names that are covered by a shorter prefix.
std::vector<std::string> frozen_prefixes(const std::vector<Block>& blocks,
                                         const std::vector<bool>& trained) {
  std::vector<std::string> prefixes;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (!trained[i])
      prefixes.insert(prefixes.end(), blocks[i].prefixes.begin(), blocks[i].prefixes.end());
  return prefixes;
}

// Learning rates per block, decreasing from the head downwards.
std::string rates_text(const std::vector<Block>& blocks, const std::vector<bool>& trained,
                       const FinetuneOptions& options) {
  std::vector<std::string> rates;
  double factor = options.below;
  for (size_t i = blocks.size() - 1; i-- > 0; factor *= options.decay)
    if (trained[i])
      for (const std::string& prefix : blocks[i].prefixes)
        rates.push_back(fmt::format("{}: {:.4g}", prefix, factor));
  return join(rates, ", ");
}

void choose_training(const FinetuneOptions& options, const std::vector<Block>& blocks,
                     const std::vector<bool>& trained, int64_t samples, RunConfig& config) {
  const bool head_only = std::ranges::count(trained, true) == 1;
  TrainConfig& train = config.train;
  train.freeze = frozen_prefixes(blocks, trained);
  const FinetuneLength length = finetune_length(samples, head_only);
  train.batch_size = length.batch_size;
  train.epochs = length.epochs;
  train.patience = length.patience;
  const double rate = options.rate > 0 ? options.rate : head_only ? 3e-3 : 1e-3;
  train.optimizer = {{"name", "adamw"},
                     {"lr", fmt::format("{}", rate)},
                     {"weight_decay", "0.01"},
                     {"rates", rates_text(blocks, trained, options)}};
  train.clip_norm = 1;
}

RunConfig with_overrides(const RunConfig& config, const std::vector<std::string>& overrides) {
  return parse_config(to_toml(config), "fine-tuning", overrides, std::filesystem::current_path());
}

}  // namespace

FinetuneLength finetune_length(int64_t samples, bool head_only) {
  constexpr int64_t kSteps = 2000;
  // A power of two, for lanes of equal size.
  const auto batch = static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(samples / 8, 1, 32))));
  const int64_t epochs =
      std::clamp<int64_t>(kSteps * batch / std::max<int64_t>(1, samples), head_only ? 50 : 20, 100);
  return {batch, epochs, std::clamp<int64_t>(epochs / 8, 5, 10)};
}

Finetuning plan_finetuning(const BaseNetwork& base, const std::string& data,
                           const FinetuneOptions& options) {
  Finetuning plan;
  RunConfig& config = plan.config;
  config.data = data_for(base, data, options.side);
  config.data.test_fraction = 0.15;
  config.model = base.model;
  const bool next_tokens = is_running_text(config.data.set);
  if (!next_tokens && config.data.validation == 0) config.data.validation = 0.15;
  if (next_tokens && is_of_bert(base.model.name)) config.data.task = "masked";
  if (config.data.task == "masked") config.model.name = "bert_pretraining";
  // Overrides that affect the number of samples, before the network is known.
  RunConfig first = with_overrides(config, options.overrides);
  if (!next_tokens && base.reads_text()) first.model.name = classifier_of(base.model.name);
  plan.data = open_data(first);
  const RunData& opened = plan.data;
  const data::SampleLayout& layout = opened.layout();
  const int64_t samples = opened.train->size();
  if (!next_tokens) {
    check_classes(*opened.train, data, first.data.samples > 0);
    require(layout.target_kind != data::TargetKind::none, ErrorKind::invalid_argument,
            "[{}] has no targets, expected classes or values to learn", data);
    plan.keeps_head =
        !options.new_head && !base.class_names.empty() && base.class_names == layout.class_names;
    if (plan.keeps_head)
      plan.notes.push_back(
          "the head of the base has the same classes and is kept; use --new-head to replace it");
    else
      replace_head(base, layout, outputs_for(layout, options), config.model);
  }
  const TensorType sample = sample_type(layout, opened.augment);
  try {
    plan.blocks = blocks_of(make_model(config.model, layout), sample);
  } catch (const Error& error) {
    const bool pictures = base.reads_images() && sample.shape.rank() == base.sample.shape.rank();
    fail(error.kind(), "[{}] does not fit samples {}: {}; the base was trained on {}{}", base.name,
         to_string(sample.shape), error.what(), to_string(base.sample.shape),
         pictures ? fmt::format(", try --size {}", base.sample.shape.back()) : "");
  }
  std::string train = options.train;
  if (train == "auto") train = next_tokens ? "all" : automatic_choice(samples, plan.notes);
  if (options.lora > 0) train = "head";
  plan.trained = trained_blocks(plan.blocks, train);
  if (options.lora > 0 && next_tokens) plan.trained.back() = false;  // the head is not new
  if (!plan.keeps_head && !next_tokens) config.model.new_layers = plan.blocks.back().prefixes;
  for (const std::string& name :
       missing_layers(base, make_model(config.model, layout), sample, config.model.new_layers)) {
    config.model.new_layers.push_back(name);
    for (size_t i = 0; i < plan.blocks.size(); ++i)  // randomly initialised blocks must be trained
      if (begins_with_any(name, plan.blocks[i].prefixes)) plan.trained[i] = true;
  }
  choose_training(options, plan.blocks, plan.trained, samples, config);
  if (options.lora > 0) {
    config.model.adapters = fmt::format("lora {}", options.lora);
    config.model.new_layers.emplace_back(nn::kAdapterPrefix);
    config.train.epochs = 20;
    config.train.patience = 5;
    config.train.optimizer["lr"] = fmt::format("{}", options.rate > 0 ? options.rate : 1e-3);
  }
  if (!next_tokens && has_values(layout)) {
    config.train.loss = "mse";
    if (layout.target.elements() == outputs_for(layout, options))
      config.train.metrics = {"mean absolute error"};
  } else if (!next_tokens) {
    // Accuracy on few samples is too noisy to select the best epoch.
    constexpr int64_t kEnough = 1000;
    const data::DatasetPtr& judged = opened.validation ? opened.validation : opened.test;
    const bool many = judged->size() >= kEnough;
    config.train.metrics = {"accuracy"};
    config.train.best_by = many ? "accuracy" : "loss";
  } else {
    config.train.epochs = 3;
    config.train.optimizer["lr"] = fmt::format("{}", options.rate > 0   ? options.rate
                                                     : options.lora > 0 ? 1e-3
                                                                        : 1e-4);
    config.train.optimizer["rates"] = "";
  }
  // Mirrors photographs unless features of frozen layers can be cached.
  if (config.data.set == "folder" && std::ranges::count(plan.trained, true) > 1)
    config.data.augment.insert(config.data.augment.begin(), "flip");
  else
    config.train.cache = base.reads_images() && !config.train.freeze.empty() && options.lora == 0;
  config = with_overrides(config, options.overrides);
  return plan;
}

std::vector<Finetuning> in_stages(const Finetuning& plan, int64_t epochs,
                                  const std::function<std::string(size_t)>& folder_of) {
  std::vector<Finetuning> stages;
  const auto first = std::ranges::find(plan.trained, true) - plan.trained.begin();
  const int64_t most = std::ssize(plan.trained) - 1 - first;  // blocks before the head
  for (int64_t count = 0; count < most; count = std::max<int64_t>(1, 2 * count)) {
    Finetuning stage = plan;
    for (int64_t i = 0; i < std::ssize(plan.trained) - 1 - count; ++i) stage.trained[i] = false;
    stage.config.train.freeze = frozen_prefixes(stage.blocks, stage.trained);
    stage.config.train.epochs = epochs;
    stage.config.train.patience = 0;
    stages.push_back(std::move(stage));
  }
  stages.push_back(plan);
  for (size_t i = 1; i < stages.size(); ++i) {
    stages[i].config.model.weights =
        (std::filesystem::path(folder_of(i - 1)) / "checkpoints" / "best").string();
    stages[i].config.model.new_layers.clear();
  }
  return stages;
}

namespace {

FinetuneScore score_of(const SavedRun& run, const RunData& data) {
  FinetuneScore score;
  if (data.validation) score.validation = run.trainer->evaluate(data.validation, run.augment);
  if (data.test->size() > 0) score.test = run.trainer->evaluate(data.test, run.augment);
  return score;
}

}  // namespace

FinetuneScore score_before(const Finetuning& plan) {
  const SavedRun run(plan.config, plan.data.layout());
  load_configured_weights(*run.trainer, plan.config.model);
  return score_of(run, plan.data);
}

FinetuneScore score_after(const Finetuning& plan, const std::filesystem::path& folder) {
  return score_of(open_run({.path = folder.string(), .best = true}), plan.data);
}

}  // namespace artel::transfer
