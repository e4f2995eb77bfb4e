#include "artel/transfer/label_probe.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "artel/base/error.h"
#include "artel/nn/layers.h"
#include "artel/run/config/setup.h"
#include "artel/transfer/small_model.h"

namespace artel::transfer {
namespace {

FeaturePart labelled(const FeaturePart& all, const std::vector<int64_t>& samples) {
  FeaturePart part;
  for (const Tensor& layer : all.layers) {
    std::vector<int64_t> extents = layer.shape().extents();
    const size_t bytes = layer.bytes() / static_cast<size_t>(extents[0]);
    extents[0] = std::ssize(samples);
    Tensor rows{Shape(extents)};
    for (size_t i = 0; i < samples.size(); ++i)
      std::memcpy(rows.raw() + i * bytes, layer.raw() + static_cast<size_t>(samples[i]) * bytes,
                  bytes);
    part.layers.push_back(rows);
  }
  part.targets = Tensor({std::ssize(samples)}, DType::i32);
  for (size_t i = 0; i < samples.size(); ++i)
    part.targets.values<int32_t>()[i] = all.targets.values<int32_t>()[samples[i]];
  return part;
}

// Trains the layers of the base and a head from random weights on the labelled samples.
double from_scratch(const BaseNetwork& base, const RunData& data,
                    const std::vector<int64_t>& samples, const LabelProbeOptions& options,
                    const std::vector<std::string>& layers) {
  const Model body = ending_at(base.network(), {layers.back()}, options.request.pooling);
  // Adds no scope around the layers, because they are found by name.
  const Model network = nn::chain(
      {body.network(), nn::flatten(), nn::named("head", nn::dense(data.layout().classes))});
  Cluster alone;
  Trainer trainer(
      alone, network,
      {.optimizer = optim::adam(1e-3), .seed = options.seed, .threads = options.threads});
  const data::Augmentation prepare = data.augment.for_testing();
  trainer.fit(data::subset(data.train, samples),
              {.batch_size = std::clamp<int64_t>(std::ssize(samples) / 4, 1, 64),
               .epochs = options.scratch_epochs,
               .augment = prepare});
  return trainer.evaluate(data.test, prepare).accuracy;
}

}  // namespace

std::vector<LabelProbe> probe_labels(const BaseNetwork& base, const DataConfig& data,
                                     const LabelProbeOptions& options,
                                     const FeatureProgress& progress) {
  RunConfig config;
  config.data = data;
  config.data.task = "automatic";
  config.model = base.model;
  const RunData opened = open_data(config);
  require(opened.layout().classes > 1 && opened.test->size() > 0, ErrorKind::invalid_argument,
          "probe: got {} classes and {} test samples, expected classes and a test part",
          opened.layout().classes, opened.test->size());
  const Features features =
      extract(base, config.data, options.request, options.threads, nullptr, progress);
  std::vector<LabelProbe> probes;
  for (const double share : options.shares) {
    require(share > 0 && share <= 1, ErrorKind::invalid_argument,
            "labels: got the share {}, expected more than 0 and at most 1", share);
    const int64_t all = features.train.size();
    std::vector<int64_t> samples = data::split_samples(all, 1 - share, options.seed).train;
    if (share == 1) {
      samples.clear();
      for (int64_t i = 0; i < all; ++i) samples.push_back(i);
    }
    require(samples.size() >= 4, ErrorKind::invalid_argument,
            "labels: {} of {} samples are {}, expected 4 or more", share, all, samples.size());
    Features some = features;
    some.train = labelled(features.train, samples);
    const SmallModel model =
        fit_small("linear", some, {.threads = options.threads, .seed = options.seed});
    LabelProbe probe = {.share = share,
                        .labels = std::ssize(samples),
                        .accuracy = judge(model, features.test, options.threads).accuracy};
    if (options.scratch_epochs > 0)
      probe.scratch = from_scratch(base, opened, samples, options, features.request.layers);
    probes.push_back(probe);
  }
  return probes;
}

}  // namespace artel::transfer
