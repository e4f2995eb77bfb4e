#include "artel/transfer/finetune.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "artel/base/error.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/data/class_balance.h"
#include "artel/nn/adapters.h"
#include "artel/run/frozen_layers.h"
#include "artel/run/saved_run.h"
#include "artel/train/name_prefixes.h"

namespace artel::transfer {
namespace {

// What can be learnt from.
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

bool is_of_bert(const std::string& name) { return name.starts_with("bert"); }

// The network of the base with a last layer for the classes of the data.
void replace_head(const BaseNetwork& base, const data::SampleLayout& layout, ModelConfig& model) {
  model.classes = 0;
  if (!model.layers.empty()) {
    const auto last =
        std::ranges::find_if(model.layers.rbegin(), model.layers.rend(),
                             [](const std::string& layer) { return layer.starts_with("dense "); });
    require(last != model.layers.rend(), ErrorKind::unsupported,
            "[{}] has no dense layer to replace by one for {} classes", base.name, layout.classes);
    *last = fmt::format("dense {}", layout.classes);
  }
  if (is_of_bert(model.name)) {
    model.name = "bert_classifier";
    model.untied_head = false;
  }
}

// What a network that reads text has and the base lacks, such as the head that guesses hidden
// tokens.
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
  notes.push_back(fmt::format("{} are {}: training \"{}\"; --train asks for something else",
                              counted(samples, "training sample"), why, choice));
  return choice;
}

// Names before a dot need no list of all that follows.
std::vector<std::string> frozen_prefixes(const std::vector<Block>& blocks,
                                         const std::vector<bool>& trained) {
  std::vector<std::string> prefixes;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (!trained[i])
      prefixes.insert(prefixes.end(), blocks[i].prefixes.begin(), blocks[i].prefixes.end());
  return prefixes;
}

// Smaller below, larger for the head.
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
  // A power of two, so that lanes are equal.
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
  const bool next_tokens = config.data.set == "text" || base.model.name.starts_with("gpt2");
  if (!next_tokens && config.data.validation == 0) config.data.validation = 0.15;
  if (config.data.set == "text" && is_of_bert(base.model.name)) config.data.task = "masked";
  if (config.data.task == "masked") config.model.name = "bert_pretraining";
  // What decides how many samples there are, before the network is known.
  RunConfig first = with_overrides(config, options.overrides);
  if (!next_tokens && is_of_bert(base.model.name)) first.model.name = "bert_classifier";
  plan.data = open_data(first);
  const RunData& opened = plan.data;
  const data::SampleLayout& layout = opened.layout();
  const int64_t samples = opened.train->size();
  if (!next_tokens) {
    check_classes(*opened.train, data, first.data.samples > 0);
    require(layout.target_kind == data::TargetKind::classes, ErrorKind::unsupported,
            "[{}] has values as targets, expected classes; for values use `artel features` and "
            "`artel fit linear`",
            data);
    plan.keeps_head =
        !options.new_head && !base.class_names.empty() && base.class_names == layout.class_names;
    if (plan.keeps_head)
      plan.notes.push_back(
          "the head of the base tells the same classes and is kept; --new-head begins anew");
    else
      replace_head(base, layout, config.model);
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
  if (options.lora > 0 && next_tokens) plan.trained.back() = false;  // it is no new head
  if (!plan.keeps_head && !next_tokens) config.model.new_layers = plan.blocks.back().prefixes;
  for (const std::string& name :
       missing_layers(base, make_model(config.model, layout), sample, config.model.new_layers)) {
    config.model.new_layers.push_back(name);
    for (size_t i = 0; i < plan.blocks.size(); ++i)  // what begins at random has to be trained
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
  if (!next_tokens) {
    // The accuracy on few samples jumps, and its best epoch is one of luck.
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
  // Photographs may be mirrored, as long as what lies below the trained layers must be computed in
  // each epoch anyway.
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
