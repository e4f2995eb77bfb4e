#include "artel/run/samples/frozen_layers.h"

#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/data/fetch.h"
#include "artel/nn/frozen_part.h"
#include "artel/predict/batches.h"
#include "artel/run/folder/fingerprint.h"
#include "artel/train/name_prefixes.h"
#include "artel/train/step/kept_features.h"

namespace artel {

std::vector<std::string> parameter_names(const Model& model, const TensorType& sample) {
  std::vector<std::string> names;
  const ModelGraph built = inference_graph(model, batch_of(sample, 1));
  for (const ValueKind kind : {ValueKind::parameter, ValueKind::state})
    for (const ValueId id : built.graph.of_kind(kind)) names.push_back(built.graph.value(id).name);
  return names;
}

std::optional<KeptFeatures> keep_features(const RunConfig& config, const RunData& data,
                                          const data::DatasetPtr& judged, const Model& model,
                                          int lanes, int threads) {
  const TrainConfig& train = config.train;
  if (!train.cache) return {};
  require(!train.freeze.empty() && !config.model.weights.empty(), ErrorKind::invalid_argument,
          "train.cache: nothing to cache; set train.freeze and model.weights");
  require(!train.tune, ErrorKind::invalid_argument,
          "train.cache: kernels that train.tune measures may differ from those of the features; "
          "leave one of them out");
  require(!train.keep_last_batch, ErrorKind::invalid_argument,
          "train.cache: the smaller batch of train.keep_last_batch has other shapes, and perhaps "
          "bits, than the features; leave one of them out");
  const auto why_not = [](const std::string& reason) {
    log(LogLevel::info, "train.cache: features are computed in each epoch, because {}", reason);
    return std::nullopt;
  };
  for (const data::Transform& transform : data.augment.transforms)
    if (transform.random) return why_not(fmt::format("'{}' changes the samples", transform.text));
  if (data.augment.mixup > 0) return why_not("mixup changes the samples");
  if (data.layout().target_kind == data::TargetKind::none || data.layout().tokenizer ||
      data.train->sparse())
    return why_not("the samples are no arrays with targets");
  if (train.precision != "fp32" || train.exact_convolutions)
    return why_not("train.precision or train.exact_convolutions asks for other kernels");
  if (train.batch_size % lanes != 0) return why_not("the lanes of a batch are not equal");
  const TensorType sample = sample_type(data.layout(), data.augment);
  const auto trained = [&](const std::string& name) {
    return !begins_with_any(name, train.freeze);
  };
  const auto cut = nn::cut_frozen(model, sample, trained);
  if (const auto* none = std::get_if<nn::NoFrozenPart>(&cut)) return why_not(none->reason);
  const auto& part = std::get<nn::FrozenPart>(cut);

  const double bytes = 4.0 * static_cast<double>(part.value.shape.elements()) *
                       static_cast<double>(data.train->size() + (judged ? judged->size() : 0));
  const std::filesystem::path folder = data::data_folder();
  std::filesystem::create_directories(folder);
  const auto room = static_cast<double>(std::filesystem::space(folder).available);
  if (bytes > room / 2)
    return why_not(fmt::format("they would take {} of the {} that are free in {}",
                               format_bytes(bytes), format_bytes(room), folder.string()));

  const NamedTensors weights = weights_for(config.model, config.model.weights);
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}", fingerprint_of(config, data), join(config.data.augment, "\n"),
                  train.seed, config.data.validation);
  FeatureWork work = {.below = part.below,
                      .sample = sample,
                      .weights = weights,
                      .key = key + "\ntrain",
                      .rows = train.batch_size / lanes,
                      .lanes = lanes,
                      .threads = threads};
  KeptFeatures kept = {.above = part.above, .value = part.value};
  kept.train = kept_features(work, *data.train, data.augment);
  work.key = key + "\njudged";
  if (judged && judged->size() > 0)
    kept.judged = kept_features(work, *judged, data.augment.for_testing());
  const ModelGraph below = inference_graph(part.below, batch_of(sample, 1));
  for (const NamedTensor& weight : weights)
    if (below.graph.find(weight.name)) kept.frozen.push_back(weight);
  for (const ValueId id : below.graph.of_kind(ValueKind::parameter))
    kept.parameters += below.graph.type(id).shape.elements();
  log(LogLevel::info, "the values of layer '{}' are computed once: {} for each sample", part.layer,
      to_string(part.value.shape));
  return kept;
}

}  // namespace artel
